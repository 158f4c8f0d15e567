"""Failures of the embedded engine: its errors, and the deaths of the process during its calls."""

import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import orjson

from schemas.failures import Unavailable
from streams.adapters.durable_files import write_durably

T = TypeVar("T")

MAX_FAILED_CALLS = 3
"""Calls that may fail, for another reason than a lack of the system, before the files count as damaged."""

LACKS = tuple(f"os error {number})" for number in (5, 11, 12, 13, 23, 24, 28, 30, 116, 122))
"""Errors of the system, not of the files: I/O, busy, memory, permission, descriptors, disk, read-only, stale, quota."""

LACK_TEXTS = ("Too many open files", "Cannot allocate memory", "No space left", "Permission denied", "temporarily")
LACK_KINDS = ("WouldBlock", "OutOfMemory", "StorageFull", "PermissionDenied")
"""The same without a number: the engine prints some errors by kind. A log that is still open is `WouldBlock`."""


def translate_engine_errors(call: Callable[[], T]) -> T:
    """Raise any error of the engine or the disk as `Unavailable`, panics too; arguments were validated before."""
    try:
        return call()
    except Exception as error:
        raise Unavailable(f"the embedded vector index failed: {error}") from error
    except BaseException as error:
        # A panic of the engine is no Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise Unavailable(f"the embedded vector index failed: {error}") from error


def is_lack(problem: Unavailable) -> bool:
    """True if a call failed for lack of descriptors, memory, disk or rights: the files may be whole."""
    text = str(problem)
    cause = problem.__cause__
    of_system = isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError)
    return of_system or any(lack in text for lack in (*LACKS, *LACK_TEXTS, *LACK_KINDS))


class CountedCalls:
    """Calls of an open engine or store: any error is `Unavailable`, and those that may be damage are counted."""

    def __init__(self) -> None:
        self._failed = 0

    def __call__(self, call: Callable[[], T]) -> T:
        try:
            return translate_engine_errors(call)
        except Unavailable as problem:
            self._failed += not is_lack(problem)
            raise

    @property
    def show_damage(self) -> bool:
        """True if so many calls have failed that the files may be damaged."""
        return self._failed >= MAX_FAILED_CALLS


MARK_FILE, DEATHS_FILE = ".owner.call", ".owner.deaths.json"
"""In the root of the index: the collection of the present call, and the last deaths in a row during its calls."""

MARK_BYTES = 4096
"""More than the longest name of a file."""

MAX_DEATHS = 2
"""Deaths after which a collection is set aside. One may be a kill from outside."""


class CallMark:
    """Names the running call of one index in a memory-mapped file: it survives the process, and is set in 1 µs."""

    def __init__(self, root: Path) -> None:
        """Count the death of the last process, if the mark is set."""
        self._deaths_file = root / DEATHS_FILE
        with (root / MARK_FILE).open("a+b") as file:
            file.truncate(MARK_BYTES)
            self._map = mmap.mmap(file.fileno(), MARK_BYTES)
        self._name = b""
        self.deaths: dict[str, int] = {}
        # A damaged file says nothing of deaths.
        with suppress(OSError, ValueError, AttributeError, TypeError):
            counts = orjson.loads(self._deaths_file.read_bytes())
            self.deaths = {str(name): int(count) for name, count in counts.items()}
        last = self._map[:].split(b"\0", 1)[0].decode(errors="replace")
        # Only deaths in a row: kills from outside rarely hit calls of the same collection one after another.
        in_a_row = {last: self.deaths.get(last, 0) + 1} if last else {}
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

    def _save(self) -> None:
        write_durably(self._deaths_file, orjson.dumps(self.deaths).decode())

    def _set(self, name: bytes) -> None:
        self._name = name
        self._map[: len(name) + 1] = name + b"\0"
