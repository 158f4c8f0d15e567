"""Derived stores that are damaged on disk: set aside, so that the next start makes them again from what is kept.

Enters: the path of a file or folder whose content is derived. Leaves: the same under `<name>.damaged-<seconds>`.
Guaranteed: at most one earlier copy of a store is kept, so that a disk that damages files does not fill up.
"""

import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

log = structlog.get_logger()

MARK = ".damaged-"
"""Between the name of a store and the second in which it was set aside."""

LOOKUP_INTERVAL_S = 5.0
"""Walking through a table's files takes 5 ms, and every `health` tells the copies."""

OnDamage = Callable[[], None]
"""Called when a store was set aside while it was in use: the process ends, and its next start makes the store again."""


def set_aside(path: Path, reason: BaseException, beside: Sequence[str] = ()) -> None:
    """Rename a damaged store; delete the copy that was set aside before, and files with the suffixes `beside`."""
    for earlier in path.parent.glob(f"{path.name}{MARK}*"):
        if earlier.is_dir():
            shutil.rmtree(earlier)
        else:
            earlier.unlink(missing_ok=True)
    if path.exists():
        path.replace(path.with_name(f"{path.name}{MARK}{int(time.time())}"))
    for suffix in beside:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    log.error("a derived store is damaged: set aside, and made again", store=path.name, problem=str(reason))


class StoresSetAside:
    """The names of all copies below a data directory, for `health`; an operator may delete them."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._clock = clock
        self._names: Sequence[str] = ()
        self._known_until = float("-inf")

    def names(self) -> Sequence[str]:
        """Return the names, in order; looked up once in `LOOKUP_INTERVAL_S`."""
        if (now := self._clock()) >= self._known_until:
            self._known_until = now + LOOKUP_INTERVAL_S
            self._names = sorted(found.name for found in (self._directory / "partitions").rglob(f"*{MARK}*"))
        return self._names
