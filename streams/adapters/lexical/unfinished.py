"""The ids of memories that are being written, in two files beside a partition's index.

Enters: an id before the words of its memory are written. Leaves: after the death of the process, the ids whose words,
or whose events, may have been lost. Guaranteed: an id survives `kill -9` from the time it is added until the second
`rotate` after it. Nothing is synced: the files have to survive the process, and not the machine.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from schemas.failures import Unavailable

SUFFIXES = (".unfinished-0", ".unfinished-1")


def delete_unfinished(index: Path) -> None:
    """Delete the files beside an index, if they exist."""
    for path in _paths(index):
        path.unlink(missing_ok=True)


class UnfinishedIds:
    """The open files. Calls raise Unavailable where the disk refuses them."""

    def __init__(self, index: Path) -> None:
        """Read what the last process has left beside an index."""
        with _translate_disk_errors():
            found = [path.read_bytes() for path in _paths(index) if path.exists()]
            self._files = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) for path in _paths(index)]
        self.interrupted = tuple(dict.fromkeys(b"".join(found).decode(errors="replace").split()))
        """The ids that were found when the files were opened, each once, until `clear`."""
        self._added: set[str] = set()

    def add(self, memory_id: str) -> None:
        """Add an id to the present file."""
        if memory_id not in self._added:
            with _translate_disk_errors():
                # The separator first: an id that a full disk has cut off does not damage the next one.
                os.write(self._files[0], b"\n" + memory_id.encode())
            self._added.add(memory_id)

    def clear(self) -> None:
        """Drop the ids that were found; the next two calls of `rotate` remove them from the files."""
        self.interrupted = ()

    def rotate(self) -> None:
        """Empty the other file, and make it the present one; nothing is emptied while ids that were found are left."""
        if self.interrupted or not self._added:
            return
        self._files.reverse()
        self._added.clear()
        # An id that stays only costs time.
        with contextlib.suppress(OSError):
            os.ftruncate(self._files[0], 0)

    def close(self) -> None:
        """Close the files; what is in them is found by the next process."""
        for file in self._files:
            os.close(file)


@contextlib.contextmanager
def _translate_disk_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(f"the lexical index failed: {error}") from error


def _paths(index: Path) -> list[Path]:
    return [index.with_name(index.name + suffix) for suffix in SUFFIXES]
