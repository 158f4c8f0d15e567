"""What a person sees while something takes long: a short line every few seconds."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from streams.up.console import Tell

PROGRESS_INTERVAL_S = 3.0
"""The pause between two lines: often enough to see that it goes on, seldom enough to read."""


class DownloadProgress:
    """Counts the bytes of a download that has several parts at once, and tells how far it is."""

    def __init__(self, name: str, expected: int, tell: Tell) -> None:
        self._name = name
        self._expected = expected
        self._tell = tell
        self._bytes = 0
        self._told = time.monotonic()
        self._lock = threading.Lock()
        tell(f"fetching {name}, {expected / 1e6:.0f} MB, once")

    @contextmanager
    def counter(self, cancelled: threading.Event) -> Iterator[Callable[[int], None]]:
        """A function that takes the size of each chunk, for one part; it raises when `cancelled` is set.

        What a part had counted is taken back when it fails, since it will be fetched again.
        """
        counted = 0

        def count(size: int) -> None:
            nonlocal counted
            if cancelled.is_set():
                reason = "cancelled"
                raise InterruptedError(reason)
            counted += size
            self._add(size)

        try:
            yield count
        except BaseException:
            self._add(-counted)
            raise

    def _add(self, size: int) -> None:
        with self._lock:
            self._bytes += size
            if time.monotonic() - self._told >= PROGRESS_INTERVAL_S:
                self._told = time.monotonic()
                self._tell(f"fetching {self._name}: {self._bytes / 1e6:.0f} of {self._expected / 1e6:.0f} MB")
