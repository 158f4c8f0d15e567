"""Errors of the embedded engine as `Unavailable`, and which of them are a lack of the system rather than damage."""

from collections.abc import Callable
from typing import TypeVar

from schemas.failures import Unavailable

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
        """Call, and return what it returns."""
        try:
            return translate_engine_errors(call)
        except Unavailable as problem:
            self._failed += not is_lack(problem)
            raise

    @property
    def show_damage(self) -> bool:
        """True if so many calls have failed that the files may be damaged."""
        return self._failed >= MAX_FAILED_CALLS
