"""Runs passages in threads, and begins none while a query is under way."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol


class Texts(Protocol):
    """Where a connection's texts are run. `content` is the encoded request; a suspect runs `alone`."""

    def submit(self, content: bytes, passage: Callable[[], None], *, alone: bool) -> None:
        """Run a passage when its turn has come."""

    def note(self, content: bytes) -> AbstractContextManager[None]:
        """Do inside of this context what a passage needs before and after its run: the process may die over it."""

    def query(self, content: bytes, *, alone: bool) -> AbstractContextManager[None]:
        """Begin no passage inside of this context."""


class PassagePool:
    """Runs passages in the order of their arrival, `threads` at once. Implements `Texts` for the one worker.

    A query competes with passages for the cores. Those that run when it arrives end; the next ones wait for it, so it
    is delayed by at most one passage for each thread. After each query, waiting threads begin one passage each. The
    worker sends a suspect when nothing else is here.
    """

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads)
        self._no_query = threading.Event()
        self._no_query.set()

    def submit(self, _: bytes, passage: Callable[[], None], *, alone: bool = False) -> None:  # noqa: ARG002
        """Run a passage when a thread is free."""
        self._threads.submit(self._run, passage)

    def note(self, _: bytes) -> AbstractContextManager[None]:
        """Note nothing: the worker suspects all texts that it has sent."""
        return nullcontext()

    @contextmanager
    def query(self, _: bytes = b"", *, alone: bool = False) -> Iterator[None]:  # noqa: ARG002
        """Begin no passage inside of this context; one thread at a time may enter it."""
        self._no_query.clear()
        try:
            yield
        finally:
            self._no_query.set()

    def _run(self, passage: Callable[[], None]) -> None:
        self._no_query.wait()
        passage()
