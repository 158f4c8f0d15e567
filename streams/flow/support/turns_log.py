"""The end of the turns log by partition: a command that forgets waits until it is applied.

Turns and commands are two topics without a common order. A turn that was acknowledged to its producer before the
command was sent lies before the end of the log at the time the command is read.
"""

from typing import Protocol

from streams.partition.progress import AppliedOffsets

CATCH_UP_POLL_INTERVAL_S = 2.0
"""Pause of turns after which the log is asked whether records are left: its last offsets may hold none, as after a
transaction."""

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


async def wait_until_applied(log: TurnsLog, progress: AppliedOffsets, partition: int, end: int, boundary: str) -> None:
    """Wait until every turn of a boundary before `end` is applied."""
    before = None
    while (applied := progress.next_offset(partition, boundary) or 0) < end:
        if await progress.reached(partition, end - 1, CATCH_UP_POLL_INTERVAL_S, boundary):
            return
        # Twice the same offset: a record that was just delivered may not be applied yet.
        if before == applied and await log.is_delivered(partition, end, applied):
            return
        before = applied
