"""Runs passages in threads, and begins none while a query is under way."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


class PassagePool:
    """Runs passages in the order of their arrival, `threads` at once.

    A query competes with passages for the cores. Those that run when it arrives end; the next ones wait for it, so it
    is delayed by at most one passage for each thread. After each query, waiting threads begin one passage each.
    """

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads)
        self._no_query = threading.Event()
        self._no_query.set()

    def submit(self, passage: Callable[[], None]) -> None:
        """Run a passage when a thread is free."""
        self._threads.submit(self._run, passage)

    @contextmanager
    def query(self) -> Iterator[None]:
        """Begin no passage inside of this context; one thread at a time may enter it."""
        self._no_query.clear()
        try:
            yield
        finally:
            self._no_query.set()

    def _run(self, passage: Callable[[], None]) -> None:
        self._no_query.wait()
        passage()
