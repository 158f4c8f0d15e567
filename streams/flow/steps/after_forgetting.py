"""What follows a change that forgets, besides the memories: stored answers, and the tombstones of a boundary."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Self

from schemas.internal.changes import Change
from schemas.messages.records import Outgoing
from streams.flow.support.boundary_changes import BoundaryChanges
from streams.flow.support.job_log import JobLog
from streams.flow.worker_context import WorkerContext


@dataclass(frozen=True, slots=True)
class AfterForgetting:
    """Clears what is stored about forgotten memories outside of the memories themselves."""

    jobs: JobLog
    boundaries: BoundaryChanges
    topic: str
    """The topic `boundaries`."""
    runs_topic: str = ""
    """The topic `runs`; none: no runs are recorded."""
    runs_have_texts: bool = False
    """True if run records may have texts of any memory."""

    @classmethod
    def of(cls, ctx: WorkerContext) -> Self:
        """Return it for a worker."""
        runs = "" if ctx.runs is None else ctx.topics.runs
        has_texts = ctx.runs is not None and ctx.runs.options.texts
        return cls(ctx.jobs, ctx.boundaries, ctx.topics.boundaries, runs, runs_have_texts=has_texts)

    def clear_answers(self, change: Change, partition: int) -> list[Awaitable[None]]:
        """Remove the answers of a forgotten user's jobs, or the texts in them; return the writes to await."""
        if change.action != "forget":
            return []
        return self.jobs.forget(partition, change.scope.boundary, everything=change.whole == "user")

    def tombstones(self, change: Change, partition: int) -> Sequence[Outgoing]:
        """Return the tombstones of a forgotten boundary, which the lexical index has committed.

        From then on no earlier count of it is published.
        From that of its runs on no earlier run is listed; where runs have texts, whatever was forgotten.
        """
        boundary = change.scope.boundary
        hides_runs = change.whole == "user" or (change.action == "forget" and self.runs_have_texts)
        runs = [Outgoing(self.runs_topic, boundary.encode(), None)] if hides_runs and self.runs_topic else []
        if change.whole != "user":
            return runs
        self.boundaries.forgotten(partition, boundary)
        return [Outgoing(self.topic, boundary.encode(), None), *runs]
