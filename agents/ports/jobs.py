"""The state of jobs: running ones, the answers of the last ones, and the last backfill of each mode."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from schemas.internal.changes import JobProgress
from schemas.internal.job_history import StoredJob


class Jobs(Protocol):
    """Jobs of the boundaries that this worker serves."""

    def last_backfill(self, boundary: str) -> Mapping[str, datetime]:
        """Return the time of the last completed backfill by mode."""

    def under_way(self, boundary: str) -> Sequence[JobProgress]:
        """Return the progress of running jobs."""

    def last(self, boundary: str) -> Sequence[StoredJob]:
        """Return the last jobs, running or ended, the oldest first."""

    def find(self, boundary: str, job_id: str) -> StoredJob | None:
        """Return the job of that id, running or ended; None for an unknown one."""

    async def is_pending(self, kind: str, partition: int, offset: int) -> bool:
        """True if the request for a job of that kind is written there, in this partition, and not yet read."""
