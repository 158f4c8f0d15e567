"""The end of a process that keeps the lock of a partition which the group has given to this one.

A worker that stands still (SIGSTOP, a frozen container) keeps its locks; its session runs out, and the workers that get
its partitions would wait as long as it stands still, with all that they serve. Its partitions are not its own any more
and its fence would end it as soon as it went on, so it is killed: what it had in flight is handled again. Guaranteed:
only a process that has the lock's file open is killed. On Linux alone: elsewhere the
wait is only logged.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import structlog

STOPPED_LIMIT_S = 3.0
"""How long a stopped process may keep a lock: longer than a profiler that stops it to look."""

HELD_LIMIT_S = 60.0
"""How long a running one may: it closes its stores, which takes seconds on a slow disk."""

POLL_INTERVAL_S = 0.5
"""Between two looks at the holders."""

log = structlog.get_logger()


class OverdueHolders:
    """Watches the holders of the locks that one wait is for."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._looked_at = float("-inf")
        self._held_since: dict[int, float] = {}
        self._stopped_since: dict[int, float] = {}
        self._tried: set[int] = set()

    def look(self, locks: Iterable[Path]) -> None:
        """Look at the holders, at most twice a second, and kill those that are overdue. To be called while waiting."""
        now = self._now()
        if now - self._looked_at < POLL_INTERVAL_S:
            return
        self._looked_at = now
        for lock in locks:
            if (pid := holder_of(lock)) is not None and self._is_overdue(pid, now) and pid not in self._tried:
                self._tried.add(pid)
                _end(pid, lock)

    def _is_overdue(self, pid: int, now: float) -> bool:
        held_s = now - self._held_since.setdefault(pid, now)
        if not _is_stopped(pid):
            self._stopped_since.pop(pid, None)
            return held_s >= HELD_LIMIT_S
        return now - self._stopped_since.setdefault(pid, now) >= STOPPED_LIMIT_S


def holder_of(lock: Path) -> int | None:
    """Return the process that wrote its id into a lock file; None without one."""
    try:
        return int(lock.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _end(pid: int, lock: Path) -> None:
    """Kill a process that has the file open; another one with its number, as in another container, is left alone."""
    if not hasattr(os, "pidfd_open"):
        return
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return
    try:
        # Looked at once the process is pinned: its number may be another one's by now.
        if pid != os.getpid() and _has_open(pid, lock):
            log.error("killing a process that keeps partitions which are this worker's now", process=pid)
            signal.pidfd_send_signal(process, signal.SIGKILL)
    except OSError as problem:
        log.error("it can't be killed", process=pid, problem=repr(problem))  # noqa: TRY400 - the reason is enough
    finally:
        os.close(process)


def _is_stopped(pid: int) -> bool:
    """True if a signal has stopped the process."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    # Behind the name, which may have any characters.
    return state.rpartition(")")[2].split()[:1] == ["T"]


def _has_open(pid: int, file: Path) -> bool:
    """True if the process has the file open. Raises OSError where that can't be seen."""
    wanted = file.stat()
    for opened in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found = opened.stat()
        except OSError:
            continue
        if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
            return True
    return False
