"""How far the turns of a partition reach in the log: what a command that forgets waits for.

Turns and commands are two topics, and nothing orders them. What was acknowledged to its producer before a command was
sent stands before the end that the log has when the command comes.
"""

from typing import Protocol

from streams.flow.support.progress import AppliedOffsets

CATCH_UP_POLL_INTERVAL_S = 2.0
"""How long turns stand still before the log is asked whether there are any left. Only where the last places of the log
hold no record, as after a transaction, is this ever waited for."""


class TurnsLog(Protocol):
    """The log of turns. Raises Unavailable where it can't be asked, or the partition is not here any more."""

    async def end(self, partition: int) -> int:
        """The offset after the last one that is written."""

    def is_assigned(self, partition: int) -> bool:
        """Whether the partition is this worker's."""

    async def is_delivered(self, partition: int, end: int, applied: int) -> bool:
        """Whether every record before `end` was handed over, and none of them lies at `applied` or after it."""


async def wait_until_applied(log: TurnsLog, progress: AppliedOffsets, partition: int, end: int) -> None:
    """Wait until every turn before `end` is applied."""
    before = None
    while (applied := progress.next_offset(partition) or 0) < end:
        if await progress.reached(partition, end - 1, CATCH_UP_POLL_INTERVAL_S):
            return
        # Twice the same: what was handed over a moment ago may not be counted yet.
        if before == applied and await log.is_delivered(partition, end, applied):
            return
        before = applied
