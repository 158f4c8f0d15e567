"""The partitions whose files belong to this process, by a locked file for each in the data directory.

Enters: the partitions that the group gives to this worker, after every rebalance. Leaves: held partitions, one after
another as their last owners release them. Guaranteed: a partition is held by one process of the data directory at a
time, until that releases it or ends in any way. No two processes wait for each other forever: unassigned partitions are
released before any wait, waiting ends with the next rebalance, and a process that keeps a lock for too long is killed
(`lock_holders`).
"""

import asyncio
import fcntl
import os
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TextIO

import structlog

from streams.runtime.lock_holders import OverdueHolders, always_member, holder_of

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
        """True if all assigned partitions are held."""
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
        """Release all partitions."""
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
                    self._notice(missing, now - began)
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

    def _notice(self, missing: Collection[int], waited_s: float) -> None:
        log.warning(
            "other processes of this data directory still hold partitions that are this worker's now: one that does not"
            " end by itself must be ended",
            processes={partition: holder_of(self._path(partition)) for partition in missing},
            waited_s=round(waited_s),
        )

    def _path(self, partition: int) -> Path:
        return self._directory / f"partition-{partition}.lock"


async def nothing_open(_partition: int) -> None:
    """Close nothing of a partition that leaves: there are only tables."""
