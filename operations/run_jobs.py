"""Run a job of the worker for every user of a deployment, some at a time.

Enters: the users, and a call that runs the job for one of them. Leaves: the sum of the counts, and the users that
failed with the reason. Guaranteed: a user that is done is in the journal, and is left out when an interrupted run is
repeated; the journal goes with a run in which all are done.
"""

import sys
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from modestream_client import MemoryClientError
from modestream_client.results.upkeep import FinishedJob

from operations.journal import Journal
from operations.pacing import at_most
from operations.progress import Progress
from schemas.messages.boundaries import Boundary

RunJob = Callable[[Boundary], Awaitable[FinishedJob]]
"""Runs the job for one user to its end. Raises MemoryClientError."""


@dataclass(slots=True)
class JobTotals:
    """The sum over all users; `failures` has the reason by user."""

    users: int = 0
    resumed: int = 0
    processed: int = 0
    skipped: int = 0
    failed: int = 0
    stale_cleared: int = 0
    orphans: int = 0
    failures: dict[str, str] = field(default_factory=dict)

    def add(self, finished: FinishedJob) -> None:
        """Add one user's counts."""
        self.users += 1
        for name in ("processed", "skipped", "failed", "stale_cleared", "orphans"):
            setattr(self, name, getattr(self, name) + getattr(finished, name))

    @property
    def is_clean(self) -> bool:
        """True if nothing failed."""
        return not self.failed and not self.failures

    @property
    def resumed_note(self) -> str:
        """The part of a summary that tells of an earlier, interrupted run; empty without one."""
        return f", {self.resumed} done before" if self.resumed else ""


def report(totals: JobTotals, summary: str) -> int:
    """Print why users failed, and the summary; return the exit code, 1 if anything failed."""
    for user, reason in sorted(totals.failures.items()):
        sys.stderr.write(f"{user}: {reason}\n")
    sys.stdout.write(f"{summary}\n")
    return 0 if totals.is_clean else 1


async def run_for_each(
    boundaries: Iterable[Boundary], run: RunJob, journal: Journal, progress: Progress, at_once: int
) -> JobTotals:
    """Run the job for each user that the journal does not have, at most `at_once` at the same time."""
    every = list(boundaries)
    due = [one for one in every if one.boundary not in journal.done]
    totals = JobTotals(resumed=len(every) - len(due))
    progress.advance(totals.resumed)

    async def work(one: Boundary) -> None:
        await _run_one(one, run, journal, totals)
        progress.advance()

    await at_most(at_once, due, work)
    if totals.is_clean:
        journal.close()
    return totals


async def _run_one(boundary: Boundary, run: RunJob, journal: Journal, totals: JobTotals) -> None:
    try:
        finished = await run(boundary)
    except MemoryClientError as problem:
        totals.failures[boundary.boundary] = str(problem)
        return
    totals.add(finished)
    # A user whose vectors failed stays due: its next run may succeed.
    if not finished.failed:
        journal.finish(boundary.boundary)
