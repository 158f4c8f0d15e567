"""Running jobs of this process; in a table the last backfill of each mode, and the last jobs with their answers."""

from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from schemas.internal.changes import JOB_KINDS, Job, JobProgress
from schemas.internal.job_history import JobHistory, StoredJob
from streams.flow.stores import Table

MAX_BACKFILL_TIMES = 256
"""Modes of a boundary with a stored time, those of the last backfills: as many as it can have declared. The rest are
names that it deleted or renamed."""


CONSOLIDATION = "consolidate"
"""The kind of jobs that are requested on a topic of their own."""


class RequestLog(Protocol):
    async def is_pending(self, partition: int, offset: int) -> bool:
        """True if a record is written there and not yet handled. Raises Unavailable."""


class JobLog:
    """The jobs of a worker; `at` returns the view of a partition, `agents.ports.commands.Jobs`."""

    def __init__(
        self, history: Table[str, JobHistory], triggers: RequestLog | None = None, commands: RequestLog | None = None
    ) -> None:
        """Without `triggers` no consolidation waits to be read, without `commands` no other job does."""
        self._history = history
        self._triggers = triggers
        self._commands = commands
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
        return [tally for tally in self._running.values() if tally.job.scope.boundary == boundary]

    def last_backfill(self, partition: int, boundary: str) -> Mapping[str, datetime]:
        """Return when each mode was last backfilled completely."""
        return self._history.get(partition, boundary).last

    def record_backfill(
        self, partition: int, boundary: str, modes: Iterable[str], at: datetime
    ) -> list[Awaitable[None]]:
        """Record a completed backfill of modes; return the writes to await."""
        history = self._history.get(partition, boundary)
        last = {**history.last, **dict.fromkeys(modes, at)}
        latest = {mode: last[mode] for mode in sorted(last, key=last.__getitem__)[-MAX_BACKFILL_TIMES:]}
        return self._write(partition, boundary, history.model_copy(update={"last": latest}))

    def last(self, partition: int, boundary: str) -> Sequence[StoredJob]:
        return self._history.get(partition, boundary).stored

    def find(self, partition: int, boundary: str, job_id: str) -> StoredJob | None:
        return self._history.get(partition, boundary).find(job_id)

    def begin(self, partition: int, boundary: str, job: StoredJob) -> list[Awaitable[None]]:
        """Store a job that begins, or begins again; return the writes to await."""
        return self._write(partition, boundary, self._history.get(partition, boundary).begun(job))

    def scheduled(self, partition: int, boundary: str) -> Mapping[str, StoredJob]:
        """Return the last scheduled job of each kind."""
        return self._history.get(partition, boundary).scheduled

    def begin_scheduled(self, partition: int, boundary: str, kind: str, job: StoredJob) -> list[Awaitable[None]]:
        """Store that a scheduled job begins; return the writes to await."""
        return self._write(partition, boundary, self._history.get(partition, boundary).scheduled_begun(kind, job))

    def report(self, partition: int, boundary: str, job: StoredJob) -> list[Awaitable[None]]:
        """Store a report about an import; return the writes to await."""
        return self._write(partition, boundary, self._history.get(partition, boundary).reported(job))

    def end(self, partition: int, boundary: str, job_id: str, answer: bytes) -> list[Awaitable[None]]:
        """Store the answer of a job; return the writes to await."""
        return self._write(partition, boundary, self._history.get(partition, boundary).ended(job_id, answer))

    def forget(self, partition: int, boundary: str, *, everything: bool) -> list[Awaitable[None]]:
        """Forget all of a boundary, or the texts in its jobs' answers; return the writes to await."""
        after = JobHistory() if everything else self._history.get(partition, boundary).without_texts()
        return self._write(partition, boundary, after)

    async def is_pending(self, kind: str, partition: int, offset: int) -> bool:
        """True if a request for a job is written there and not yet read. Raises Unavailable."""
        requests = self._triggers if kind == CONSOLIDATION else self._commands if kind in JOB_KINDS else None
        return requests is not None and await requests.is_pending(partition, offset)

    def _write(self, partition: int, boundary: str, history: JobHistory) -> list[Awaitable[None]]:
        if history == self._history.get(partition, boundary):
            return []
        self._history.put(partition, boundary, history)
        return self._history.pending_writes()

    def at(self, partition: int) -> "PartitionJobs":
        return PartitionJobs(self, partition)


@dataclass(frozen=True, slots=True)
class PartitionJobs:
    """The jobs of one partition's boundaries. Implements `agents.ports.commands.Jobs`."""

    log: JobLog
    partition: int

    def under_way(self, boundary: str) -> Sequence[JobProgress]:
        return self.log.under_way(boundary)

    def last_backfill(self, boundary: str) -> Mapping[str, datetime]:
        return self.log.last_backfill(self.partition, boundary)

    def last(self, boundary: str) -> Sequence[StoredJob]:
        return self.log.last(self.partition, boundary)

    def scheduled(self, boundary: str) -> Mapping[str, StoredJob]:
        return self.log.scheduled(self.partition, boundary)

    def find(self, boundary: str, job_id: str) -> StoredJob | None:
        return self.log.find(self.partition, boundary, job_id)

    async def is_pending(self, kind: str, partition: int, offset: int) -> bool:
        """True if a request for a job is written there, in this partition, and not yet read. Raises Unavailable."""
        return partition == self.partition and await self.log.is_pending(kind, partition, offset)
