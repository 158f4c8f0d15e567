"""Schedule the texts of several workers in one process: queries at once, passages in turns, suspects alone.

Enters: texts by worker. Guaranteed: a passage waits for at most one of each other worker for each own passage, and for
the queries before its turn; no query waits for a passage, except running ones. While a suspect runs (a text over which
the process has died before), nothing else does: another death proves it. The texts in progress are in a file that
outlives the process, so that workers know which may have ended it.
"""

import mmap
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from streams.adapters.embedding.process import frames
from streams.fair_queue import FairQueue

SLOTS = 2048
"""Concurrent texts: for each thread the running one and about ten whose answers it makes; for each worker one being
read."""

FREE = bytes(frames.KEY_BYTES)


def create_slots(path: Path) -> None:
    """Replace the file of an earlier run, which its readers still have open."""
    draft = path.with_suffix(".new")
    draft.write_bytes(FREE * SLOTS)
    draft.replace(path)


def read_slots(descriptor: int) -> frozenset[bytes]:
    """Return the keys of the texts in progress."""
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


Passage = tuple[bytes, Callable[[], None]]
"""An encoded request, and the function that embeds it."""


class TurnPool:
    """Runs texts in `threads` own threads, queries in those of their callers, `threads` of them at once."""

    def __init__(self, threads: int, slots: WorkSlots) -> None:
        self._threads = threads
        self._slots = slots
        self._changed = threading.Condition()
        self._passages: FairQueue[Passage] = FairQueue()
        self._suspects: deque[Passage] = deque()
        self._running = 0
        self._is_alone = False
        self._suspect_queries = 0
        self._queries: set[int] = set()
        self._last_query = 0
        for _ in range(threads):
            threading.Thread(target=self._run, daemon=True).start()

    def submit(self, worker: str, content: bytes, passage: Callable[[], None], *, alone: bool) -> None:
        with self._changed:
            if alone:
                self._suspects.append((content, passage))
            else:
                self._passages.put(worker, (content, passage))
            self._changed.notify_all()

    def note(self, content: bytes) -> AbstractContextManager[None]:
        """Note a passage outside of its run, while it is cut into tokens or answered: the process may die over it."""
        return self._slots.at(content)

    @contextmanager
    def query(self, content: bytes, *, alone: bool) -> Iterator[None]:
        """Run a query in this context: no passage begins meanwhile. At most `threads` callers are in it at once."""
        with self._changed:
            self._suspect_queries += alone
            self._changed.wait_for(lambda: self._may_query(alone=alone))
            self._suspect_queries -= alone
            self._last_query = number = self._last_query + 1
            self._queries.add(number)
            self._is_alone = alone
        try:
            with self._slots.at(content):
                yield
        finally:
            with self._changed:
                self._queries.remove(number)
                self._is_alone = self._is_alone and not alone
                self._changed.notify_all()

    def _may_query(self, *, alone: bool) -> bool:
        if alone:
            return not (self._is_alone or self._running or self._queries)
        return not (self._is_alone or self._suspect_queries) and len(self._queries) < self._threads

    def _run(self) -> None:
        while True:
            with self._changed:
                (content, passage), alone = self._next()
            with self._slots.at(content):
                passage()
            with self._changed:
                self._running -= 1
                self._is_alone = self._is_alone and not alone
                if alone or not self._running:
                    self._changed.notify_all()

    def _next(self) -> tuple[Passage, bool]:
        """Wait for a passage whose turn has come, and for the queries in progress by then."""
        while True:
            self._changed.wait_for(self._has_turn)
            self._changed.wait_for(partial(self._have_ended, self._last_query))
            if self._has_turn():
                self._running += 1
                if self._suspects:
                    self._is_alone = True
                    return self._suspects.popleft(), True
                return self._passages.get(), False

    def _have_ended(self, last_query: int) -> bool:
        return min(self._queries, default=last_query + 1) > last_query

    def _has_turn(self) -> bool:
        if self._is_alone or self._suspect_queries:
            return False
        if self._suspects:
            return not self._running and not self._queries
        return bool(len(self._passages))
