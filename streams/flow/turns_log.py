"""The end of the turns log by partition: a command that forgets waits until it is applied.

Turns and commands are two topics without a common order. A turn that was acknowledged to its producer before the
command was sent lies before the end of the log at the time the command is read.
"""

import asyncio
from collections import defaultdict
from contextlib import suppress
from typing import Protocol

from schemas.failures import Unavailable
from streams.partition.progress import AppliedOffsets

CATCH_UP_POLL_INTERVAL_S = 2.0
"""Pause of turns after which the log is asked whether records are left: its last offsets may hold none, as after a
transaction."""

TAKEN_POLL_S = 0.1
"""The same for the turns of a partition that was just taken, for which a caller waits."""

LOG_TIMEOUT_S = 30.0
"""How long the end of the log is requested for a command or its change; then the command may be sent again."""


class TurnsLog(Protocol):
    """The log of turns. Calls raise Unavailable if Kafka does not answer or the partition is no longer assigned."""

    async def end(self, partition: int) -> int:
        """Return the offset after the last record that may be read."""

    async def end_with_transactions(self, partition: int) -> int:
        """Return the offset after the last written record.

        Raises Unavailable if a transaction stays open: its records, and those after it, can't be read yet.
        """

    def is_assigned(self, partition: int) -> bool:
        """True if the partition is assigned to this worker."""

    async def is_delivered(self, partition: int, end: int, applied: int) -> bool:
        """True if every record before `end` was delivered, and none of them lies at `applied` or after it."""


async def wait_until_applied(
    log: TurnsLog, progress: AppliedOffsets, partition: int, end: int, boundary: str, poll_s: float | None = None
) -> None:
    """Wait until every turn of a boundary before `end` is applied; `poll_s` replaces `CATCH_UP_POLL_INTERVAL_S`."""
    before = None
    while (applied := progress.next_offset(partition, boundary) or 0) < end:
        if await progress.reached(partition, end - 1, poll_s or CATCH_UP_POLL_INTERVAL_S, boundary):
            return
        # Twice the same offset: a record that was just delivered may not be applied yet.
        if before == applied and await log.is_delivered(partition, end, applied):
            return
        before = applied


class TakenTurns:
    """The turns that the log of a partition had when it was taken.

    A killed worker may have answered some that it had not committed: they are delivered again, and what follows them
    names their memories and modes.
    """

    def __init__(self, log: TurnsLog, progress: AppliedOffsets) -> None:
        self._log = log
        self._progress = progress
        self._ends: dict[int, tuple[int, int]] = {}

    async def applied(self, partition: int, boundary: str, within_s: float) -> None:
        """Wait until those of a boundary are applied, at most `within_s` seconds. Raises Unavailable."""
        starts = self._progress.starts[partition]
        if self._ends.get(partition, (-1, 0))[0] != starts:
            # It takes some 0.2 s: the consumer's connection waits for records meanwhile.
            self._ends[partition] = starts, await self._log.end(partition)
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                end = self._ends[partition][1]
                await wait_until_applied(self._log, self._progress, partition, end, boundary, TAKEN_POLL_S)


class LogEnds:
    """Knows how far the log reached when it was last asked: tells offsets that were never given."""

    def __init__(self, log: TurnsLog) -> None:
        self._log = log
        self._ends: dict[int, int] = {}
        self._asked_at: dict[int, float] = {}
        self._asking: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def is_beyond(self, partition: int, offset: int) -> bool:
        """True if the log did not reach this offset at a time after the call. False if Kafka does not answer.

        Many calls share one request to the broker, but none an answer to a request from before it: an offset that was
        given just now is never beyond.
        """
        called_at = asyncio.get_running_loop().time()
        if offset < self._ends.get(partition, 0):
            return False
        async with self._asking[partition]:
            if self._asked_at.get(partition, -1.0) < called_at:
                asked_at = asyncio.get_running_loop().time()
                try:
                    self._ends[partition] = await self._log.end(partition)
                except Unavailable:
                    return False
                self._asked_at[partition] = asked_at
        return offset >= self._ends[partition]
