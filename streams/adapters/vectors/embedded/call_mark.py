"""The collection that the engine is reading, in a file that survives the death of the process; deaths by collection.

Damaged files can make the engine abort the process. A start finds the mark, and counts a death for the collection.
"""

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from streams.adapters.durable_files import write_durably

MARK_FILE, DEATHS_FILE = ".owner.call", ".owner.deaths.json"
"""In the root of the index: the collection of the present call, and the last deaths in a row during its calls."""

MARK_BYTES = 4096
"""More than the longest name of a file."""

MAX_DEATHS = 2
"""Deaths after which a collection is set aside. One may be a kill from outside."""


class CallMark:
    """The mark of one index. A memory-mapped file: setting it takes a microsecond, and only the kernel must survive."""

    def __init__(self, root: Path) -> None:
        """Count the death of the last process, if the mark is set."""
        self._deaths_file = root / DEATHS_FILE
        with (root / MARK_FILE).open("a+b") as file:
            file.truncate(MARK_BYTES)
            self._map = mmap.mmap(file.fileno(), MARK_BYTES)
        self._name = b""
        self.deaths = self._read_deaths()
        found = self._map[:].split(b"\0", 1)[0].decode(errors="replace")
        # Only deaths in a row: kills from outside rarely hit calls of the same collection one after another.
        in_a_row = {found: self.deaths.get(found, 0) + 1} if found else {}
        if in_a_row != self.deaths:
            self.deaths = in_a_row
            self._save()
        self._set(b"")

    @contextmanager
    def calling(self, collection: str) -> Iterator[None]:
        """Set the mark during a call that reads a collection's files."""
        outer = self._name
        self._set(collection.encode())
        try:
            yield
        finally:
            self._set(outer)

    def forget(self, collection: str) -> None:
        """Forget the deaths of a collection that was set aside."""
        if self.deaths.pop(collection, None) is not None:
            self._save()

    def close(self) -> None:
        """Forget all deaths: this process ends by itself."""
        self._map.close()
        self._deaths_file.unlink(missing_ok=True)

    def _read_deaths(self) -> dict[str, int]:
        try:
            found = orjson.loads(self._deaths_file.read_bytes())
        except (OSError, ValueError):
            return {}
        return {str(name): int(count) for name, count in found.items()} if isinstance(found, dict) else {}

    def _save(self) -> None:
        write_durably(self._deaths_file, orjson.dumps(self.deaths).decode())

    def _set(self, name: bytes) -> None:
        self._name = name
        self._map[: len(name) + 1] = name + b"\0"
