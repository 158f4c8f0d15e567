"""What is known of jobs: those that run in this process, and when modes were last gone through, kept in a table."""

from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol

from schemas.jobs import BackfillTimes, Job, JobProgress


class AwaitableJobs(Protocol):
    """When the modes of each boundary were last gone through."""

    def get(self, partition: int, boundary: str) -> BackfillTimes:
        """What is known of a boundary."""
        ...

    def put(self, partition: int, boundary: str, backfilled: BackfillTimes) -> None:
        """Write it over what was. Only while an event of that partition is being handled."""
        ...

    def pending_writes(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        ...


class JobLog:
    """Implements `agents.ports.jobs.Jobs`."""

    def __init__(self, kept: AwaitableJobs) -> None:
        self._kept = kept
        self._running: dict[str, JobProgress] = {}

    @contextmanager
    def running(self, job: Job) -> Iterator[JobProgress]:
        """Count what a job does, for all to see until it ends."""
        tally = self._running[job.job_id] = JobProgress(job)
        try:
            yield tally
        finally:
            self._running.pop(job.job_id, None)

    def under_way(self, boundary: str) -> Sequence[JobProgress]:
        """How far the jobs of a boundary are that run now."""
        return [tally for tally in self._running.values() if tally.job.scope.boundary == boundary]

    def last_backfill(self, partition: int, boundary: str) -> Mapping[str, datetime]:
        """When each mode's vectors were last gone through to the end."""
        return self._kept.get(partition, boundary).last

    def record_backfill(
        self, partition: int, boundary: str, modes: Iterable[str], at: datetime
    ) -> list[Awaitable[None]]:
        """Note that modes were gone through; returns what must be awaited."""
        last = {**self._kept.get(partition, boundary).last, **dict.fromkeys(modes, at)}
        self._kept.put(partition, boundary, BackfillTimes(last=last))
        return self._kept.pending_writes()
