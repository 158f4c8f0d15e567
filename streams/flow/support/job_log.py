"""What is known of jobs: those that run in this process, and when modes were last gone through, kept in a table."""

from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from schemas.jobs import BackfillTimes, Job, JobProgress
from streams.flow.stores.tables import Table


class JobLog:
    """The jobs of a worker; `at` gives the view of a partition, `agents.ports.jobs.Jobs`."""

    def __init__(self, kept: Table[str, BackfillTimes]) -> None:
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

    def at(self, partition: int) -> "PartitionJobs":
        """Return the view of one partition."""
        return PartitionJobs(self, partition)


@dataclass(frozen=True, slots=True)
class PartitionJobs:
    """The jobs of one partition's boundaries. Implements `agents.ports.jobs.Jobs`."""

    log: JobLog
    partition: int

    def under_way(self, boundary: str) -> Sequence[JobProgress]:
        """Return the running jobs of a boundary."""
        return self.log.under_way(boundary)

    def last_backfill(self, boundary: str) -> Mapping[str, datetime]:
        """Return when each mode was last backfilled completely."""
        return self.log.last_backfill(self.partition, boundary)
