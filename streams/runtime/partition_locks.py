"""The partitions whose files belong to this process, by a locked file for each in the data directory.

Enters: the partitions that the group gives to this worker, after every rebalance. Leaves: held partitions, one after
another as their last owners release them. Guaranteed: a partition is held by one process of the data directory at a
time, until that releases it or ends in any way. No two processes wait for each other forever: unassigned partitions are
released before any wait, waiting ends with the next rebalance, and a process that keeps a lock for too long is killed.
"""

import asyncio
import fcntl
import os
import signal
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import structlog

# Kill a process that keeps the lock of a partition which the group has given to this one.
#
# A frozen worker (SIGSTOP, a frozen container) keeps its locks; its session runs out, and the workers that get its
# partitions would wait, with all that they serve, until it resumes. Its partitions are not its own any more and its
# fence would end it as soon as it resumed, so it is killed: its records in flight are handled again. Guaranteed: only a
# process that has the lock's file open is killed, and only by a member of the group: a process that was frozen itself,
# or is cut off from Kafka, may wait for partitions that are the holder's again. Only on Linux: elsewhere the wait is
# just logged.

STOPPED_LIMIT_S = 3.0
"""Time limit for a stopped process to keep a lock: longer than a profiler that stops it for a sample."""

HELD_LIMIT_S = 60.0
"""Time limit for a running one: it closes its stores, which takes seconds on a slow disk."""

END_POLL_INTERVAL_S = 0.5

MAX_PAUSE_S = 2.0
"""After a longer interval this process did not run, and may have missed decisions of the group."""


def always_member() -> bool:
    """True: for a process outside of any group."""
    return True


@dataclass(slots=True)
class Holder:
    """A process that keeps a lock, and the time since when it is known to."""

    pid: int
    held_since: float
    stopped_since: float | None = None

    def is_overdue(self, now: float) -> bool:
        """True if it has kept the lock for too long; call it at each check."""
        if not _is_stopped(self.pid):
            self.stopped_since = None
            return now - self.held_since >= HELD_LIMIT_S
        if self.stopped_since is None:
            self.stopped_since = now
        return now - self.stopped_since >= STOPPED_LIMIT_S


class OverdueHolders:
    """Watches the holders of the locks that a process waits for."""

    def __init__(
        self, is_member: Callable[[], bool] = always_member, now: Callable[[], float] = time.monotonic
    ) -> None:
        """`is_member` is False while the group may have gone on without this process."""
        self._is_member = is_member
        self._now = now
        self._looked_at = float("-inf")
        self._holders: dict[Path, Holder] = {}

    def forget(self) -> None:
        """Count from the next check on: earlier ones were under another assignment."""
        self._holders = {}

    def look(self, locks: Iterable[Path]) -> None:
        """Check the holders, at most twice a second, and kill overdue ones. Call it while waiting."""
        now = self._now()
        pause_s = now - self._looked_at
        if pause_s < END_POLL_INTERVAL_S:
            return
        self._looked_at = now
        if pause_s > MAX_PAUSE_S or not self._is_member():
            self.forget()
        self._holders = {lock: self._seen(lock, pid, now) for lock in locks if (pid := holder_of(lock)) is not None}
        overdue = {holder.pid: lock for lock, holder in self._holders.items() if holder.is_overdue(now)}
        for pid, lock in overdue.items():
            _end(pid, lock, self._is_member)
        # If it can't be killed, the next attempt comes after the same time again.
        self._holders = {lock: holder for lock, holder in self._holders.items() if holder.pid not in overdue}

    def _seen(self, lock: Path, pid: int, now: float) -> Holder:
        """Return the tracked holder: nothing if the lock has changed hands."""
        known = self._holders.get(lock)
        return known if known is not None and known.pid == pid else Holder(pid, now)


def holder_of(lock: Path) -> int | None:
    """Return the process that wrote its id into a lock file; None without one."""
    try:
        return int(lock.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


POLL_INTERVAL_S = 0.02
"""Interval between tries: a released lock is taken after half of it on average."""

NOTICE_AFTER_S, NOTICE_INTERVAL_S = 3.0, 10.0
"""Time after which a wait is logged: an owner that flushes takes less."""

log = structlog.get_logger()


class PartitionLocks:
    """The locks below one directory."""

    def __init__(self, directory: Path, is_member: Callable[[], bool] = always_member) -> None:
        """`is_member` is False while the group may have gone on without this process: it kills nothing then."""
        self._directory = directory
        self._holders = OverdueHolders(is_member)
        self._held: dict[int, TextIO] = {}
        self._assigned: frozenset[int] = frozenset()
        self._copies: frozenset[int] = frozenset()
        self._awaited: tuple[int, ...] = ()

    def awaited(self) -> dict[str, int | None]:
        """Return the awaited partitions, with the processes that hold them; None: unknown."""
        return {str(partition): holder_of(self._path(partition)) for partition in self._awaited}

    def is_held(self, partition: int) -> bool:
        """True if the files of the partition are this process's own."""
        return partition in self._held

    def is_original(self, partition: int) -> bool:
        """True if the files of the partition are this process's own, and not a copy of another worker's."""
        return partition in self._held and partition not in self._copies

    @property
    def assigned(self) -> frozenset[int]:
        """The partitions that this worker serves, or is to serve."""
        return self._assigned

    @property
    def are_held(self) -> bool:
        return self._assigned <= self._held.keys()

    def assign(self, partitions: Collection[int], copies: Collection[int] = ()) -> list[int]:
        """Take the partitions of a new assignment; return held ones that must be released.

        Held `copies` stay held; nothing waits for the others (`try_copy`).
        """
        self._assigned, self._copies = frozenset(partitions), frozenset(copies)
        self._holders.forget()
        return sorted(self._held.keys() - self._assigned - frozenset(copies))

    def try_copy(self, partition: int) -> bool:
        """Hold a partition for a copy unless another process has it; return whether it is held. Never waits."""
        return self._try(partition)

    def release(self, partition: int) -> None:
        """Release a partition: nothing of it may be open."""
        if (held := self._held.pop(partition, None)) is not None:
            held.close()

    def close(self) -> None:
        for partition in list(self._held):
            self.release(partition)

    async def acquire(self) -> None:
        """Wait until all assigned partitions are held; a process that keeps one for too long is killed."""
        began = noticed = time.monotonic()
        noticed += NOTICE_AFTER_S - NOTICE_INTERVAL_S
        try:
            while missing := [partition for partition in sorted(self._assigned) if not self._try(partition)]:
                self._awaited = tuple(missing)
                if (now := time.monotonic()) - noticed >= NOTICE_INTERVAL_S:
                    noticed = now
                    log.warning(
                        "other processes of this data directory still hold partitions that are this worker's now: one"
                        " that does not end by itself must be ended",
                        processes={partition: holder_of(self._path(partition)) for partition in missing},
                        waited_s=round(now - began),
                    )
                self._holders.look(map(self._path, missing))
                await asyncio.sleep(POLL_INTERVAL_S)
        finally:
            self._awaited = ()

    def _try(self, partition: int) -> bool:
        if partition in self._held:
            return True
        self._directory.mkdir(parents=True, exist_ok=True)
        file = self._path(partition).open("a+", encoding="ascii")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        self._held[partition] = file
        return True

    def _path(self, partition: int) -> Path:
        return self._directory / f"partition-{partition}.lock"


async def nothing_open(_partition: int) -> None:
    """Close nothing of a partition that leaves: there are only tables."""


def _end(pid: int, lock: Path, is_member: Callable[[], bool]) -> None:
    """Kill a process that has the file open; another one with its number, as in another container, is left alone."""
    if not hasattr(os, "pidfd_open"):
        return
    try:
        process = os.pidfd_open(pid)
    except OSError:
        return
    try:
        # Checked once the process is pinned: its number may be another one's by now, and the lock in other hands.
        if pid != os.getpid() and is_member() and holder_of(lock) == pid and _has_open(pid, lock):
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
    """True if the process has the file open. Raises OSError if that can't be determined."""
    wanted = file.stat()
    for opened in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found = opened.stat()
        except OSError:
            continue
        if (found.st_dev, found.st_ino) == (wanted.st_dev, wanted.st_ino):
            return True
    return False
