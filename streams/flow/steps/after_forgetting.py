"""What follows a change that forgets, besides the memories: stored answers and runs, and a boundary's tombstones."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Self

from schemas.internal.changes import Change
from schemas.internal.consolidation import RunHistory
from schemas.messages.records import Outgoing
from streams.flow.boundary_changes import BoundaryChanges
from streams.flow.job_log import JobLog
from streams.flow.stores.tables import ScopeStore
from streams.flow.worker_context import WorkerContext


@dataclass(frozen=True, slots=True)
class AfterForgetting:
    """Clears what is stored about forgotten memories outside of the memories themselves."""

    jobs: JobLog
    consolidations: ScopeStore[RunHistory]
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
        return cls(ctx.jobs, ctx.consolidations, ctx.boundaries, ctx.topics.boundaries, runs, runs_have_texts=has_texts)

    def clear_answers(self, change: Change, partition: int) -> list[Awaitable[None]]:
        """Remove the jobs and consolidations of a forgotten user, or the texts in jobs; return the writes to await."""
        if change.action != "forget":
            return []
        boundary, is_user = change.scope.boundary, change.whole == "user"
        runs: list[Awaitable[None]] = []
        if is_user:
            # Of a run that is under way, too: at its end it finds no entry of its own, and stores nothing.
            for scope in self.consolidations.scopes(partition, boundary):
                self.consolidations.put(partition, scope, RunHistory())
            runs = self.consolidations.pending_writes()
        return [*self.jobs.forget(partition, boundary, everything=is_user), *runs]

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
