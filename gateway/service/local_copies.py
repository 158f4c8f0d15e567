"""Copies of files on this machine, while their pages are looked at.

A page is drawn from a file, which lies in a shared store: it is read from there once for all of its pages. Copies are
temporary files, bounded in bytes, and go a few minutes after the last page. Each request for a page is checked before.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO

KEPT_S = 300.0
"""A copy that no page was drawn from for so long is removed: its user may have forgotten the file."""

MAX_COPIED_BYTES = 256 << 20
"""Bytes of all copies, beyond which those go that were used least lately. Those in use stay."""

CopyKey = tuple[str, str]
"""The boundary and the hash of a file."""


@dataclass(slots=True, eq=False)
class _Copy:
    file: IO[bytes]
    size: int
    users: int = 0
    timer: asyncio.TimerHandle | None = None


class LocalCopies:
    """Bytes of a store in, paths out."""

    def __init__(self, max_bytes: int = MAX_COPIED_BYTES, kept_s: float = KEPT_S) -> None:
        self._max_bytes = max_bytes
        self._kept_s = kept_s
        self._copies: OrderedDict[CopyKey, _Copy] = OrderedDict()

    @asynccontextmanager
    async def path(self, key: CopyKey, pieces: AsyncIterator[bytes]) -> AsyncIterator[Path]:
        """Lend a file; `pieces` are read where there is no copy of it. Raises what they raise."""
        copy = self._copies.get(key)
        if copy is None:
            made = await _copied(pieces)
            # Another request may have read it meanwhile: then this copy is not kept.
            copy = self._copies.setdefault(key, made)
            if copy is not made:
                made.file.close()
        self._copies.move_to_end(key)
        copy.users += 1
        try:
            yield Path(copy.file.name)
        finally:
            copy.users -= 1
            if copy.timer is not None:
                copy.timer.cancel()
            copy.timer = asyncio.get_running_loop().call_later(self._kept_s, self._remove, key)
            self._shrink()

    def close(self) -> None:
        """Remove all copies."""
        for key in list(self._copies):
            self._remove(key)

    def _shrink(self) -> None:
        for key in list(self._copies):
            if sum(copy.size for copy in self._copies.values()) <= self._max_bytes:
                return
            self._remove(key)

    def _remove(self, key: CopyKey) -> None:
        if self._copies[key].users:
            return
        copy = self._copies.pop(key)
        if copy.timer is not None:
            copy.timer.cancel()
        copy.file.close()


async def _copied(pieces: AsyncIterator[bytes]) -> _Copy:
    file = NamedTemporaryFile(prefix="modestream-page-")  # noqa: SIM115 - it is closed when the copy is removed
    try:
        async for piece in pieces:
            await asyncio.to_thread(file.write, piece)
        file.flush()
    except BaseException:
        file.close()
        raise
    return _Copy(file, file.tell())
