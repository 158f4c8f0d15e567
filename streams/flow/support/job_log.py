"""Running jobs of this process, and the last backfill of each mode, stored in a table."""

from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from schemas.internal.changes import BackfillTimes, Job, JobProgress
from streams.flow.stores.tables import Table

MAX_BACKFILL_TIMES = 256
"""Modes of a boundary with a stored time, those of the last backfills: as many as it can have declared. The rest are
names that it deleted or renamed."""


class JobLog:
    """The jobs of a worker; `at` returns the view of a partition, `agents.ports.jobs.Jobs`."""

    def __init__(self, backfills: Table[str, BackfillTimes]) -> None:
        self._backfills = backfills
        self._running: dict[str, JobProgress] = {}

    @contextmanager
    def running(self, job: Job) -> Iterator[JobProgress]:
        """Yield the progress of a job, visible in `under_way` until it ends."""
        tally = self._running[job.job_id] = JobProgress(job)
        try:
            yield tally
        finally:
            self._running.pop(job.job_id, None)

    def under_way(self, boundary: str) -> Sequence[JobProgress]:
        """Return the running jobs of a boundary."""
        return [tally for tally in self._running.values() if tally.job.scope.boundary == boundary]

    def last_backfill(self, partition: int, boundary: str) -> Mapping[str, datetime]:
        """Return when each mode was last backfilled completely."""
        return self._backfills.get(partition, boundary).last

    def record_backfill(
        self, partition: int, boundary: str, modes: Iterable[str], at: datetime
    ) -> list[Awaitable[None]]:
        """Record a completed backfill of modes; return the writes to await."""
        last = {**self._backfills.get(partition, boundary).last, **dict.fromkeys(modes, at)}
        latest = sorted(last, key=last.__getitem__)[-MAX_BACKFILL_TIMES:]
        self._backfills.put(partition, boundary, BackfillTimes(last={mode: last[mode] for mode in latest}))
        return self._backfills.pending_writes()

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
