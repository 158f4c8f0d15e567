"""Which texts a shared process is at, in a file that outlives it: workers then know which may have ended it.

A slot is the key of a request. The file is mapped into memory: what a killed process has written is there.
"""

import mmap
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from streams.adapters.embedding.process import frames

SLOTS = 2048
"""Texts at the same time: of each thread the one that it runs and some ten whose answers it makes; of each worker one
that is read."""

FREE = bytes(frames.KEY_BYTES)


def create_slots(path: Path) -> None:
    """Put a new file in place of an earlier one, which its readers still have open."""
    draft = path.with_suffix(".new")
    draft.write_bytes(FREE * SLOTS)
    draft.replace(path)


def read_slots(descriptor: int) -> frozenset[bytes]:
    """Return the keys of the texts that were under way."""
    content = os.pread(descriptor, SLOTS * len(FREE), 0)
    keys = (content[start : start + len(FREE)] for start in range(0, len(content), len(FREE)))
    return frozenset(keys) - {FREE}


class WorkSlots:
    """The writing end, for the threads of one process."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), SLOTS * len(FREE))
        self._free = list(range(SLOTS))
        self._changing = threading.Lock()

    @contextmanager
    def at(self, content: bytes) -> Iterator[None]:
        """Note an encoded request inside of this context."""
        with self._changing:
            start = self._free.pop() * len(FREE)
        self._memory[start : start + len(FREE)] = frames.request_key(content)
        try:
            yield
        finally:
            self._memory[start : start + len(FREE)] = FREE
            with self._changing:
                self._free.append(start // len(FREE))
