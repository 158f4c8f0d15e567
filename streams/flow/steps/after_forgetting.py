"""What follows a change that forgets, besides the memories: stored answers, and the tombstone of a boundary."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass

from schemas.internal.changes import Change
from schemas.messages.records import Outgoing
from streams.flow.support.boundary_changes import BoundaryChanges
from streams.flow.support.job_log import JobLog
from streams.flow.support.lexical_commit import LexicalCommit


@dataclass(frozen=True, slots=True)
class AfterForgetting:
    """Clears what is stored about forgotten memories outside of the memories themselves."""

    jobs: JobLog
    commit: LexicalCommit
    boundaries: BoundaryChanges
    topic: str
    """The topic `boundaries`."""

    def clear_answers(self, change: Change, partition: int) -> list[Awaitable[None]]:
        """Remove the answers of a forgotten user's jobs, or the texts in them; return the writes to await."""
        if change.action != "forget":
            return []
        return self.jobs.forget(partition, change.scope.boundary, everything=change.whole == "user")

    async def tombstones(self, change: Change, partition: int) -> Sequence[Outgoing]:
        """Return the tombstone of a forgotten boundary; from then on no earlier count of it is published."""
        if change.whole != "user":
            return ()
        boundary = change.scope.boundary
        await self.commit.commit([partition])
        self.boundaries.forgotten(partition, boundary)
        return [Outgoing(self.topic, boundary.encode(), None)]
