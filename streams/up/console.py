"""Messages for the user at the terminal: short lines on standard error, so that standard output can be parsed."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

PROGRESS_INTERVAL_S = 3.0

PrintLine = Callable[[str], None]


def print_line(line: str) -> None:
    """Print a line at once. A closed console is not an error."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


class DownloadProgress:
    """Counts the bytes of a download of several concurrent parts, and prints its progress."""

    def __init__(self, name: str, expected: int, print_line: PrintLine) -> None:
        self._name = name
        self._expected = expected
        self._print_line = print_line
        self._bytes = 0
        self._printed_at = time.monotonic()
        self._lock = threading.Lock()
        print_line(f"fetching {name}, {expected / 1e6:.0f} MB, once")

    @contextmanager
    def counter(self, cancelled: threading.Event) -> Iterator[Callable[[int], None]]:
        """Count one part: the function takes the size of each chunk, and raises once `cancelled` is set.

        The count of a failed part is subtracted, as it will be fetched again.
        """
        counted = 0

        def count(size: int) -> None:
            nonlocal counted
            if cancelled.is_set():
                raise InterruptedError("cancelled")
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
            if time.monotonic() - self._printed_at >= PROGRESS_INTERVAL_S:
                self._printed_at = time.monotonic()
                self._print_line(f"fetching {self._name}: {self._bytes / 1e6:.0f} of {self._expected / 1e6:.0f} MB")
