"""The state of maintenance jobs: running jobs, and the last backfill of each mode."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from schemas.internal.changes import JobProgress


class Jobs(Protocol):
    """Jobs of the boundaries that this worker serves."""

    def last_backfill(self, boundary: str) -> Mapping[str, datetime]:
        """Return the time of the last completed backfill by mode."""

    def under_way(self, boundary: str) -> Sequence[JobProgress]:
        """Return the progress of running jobs."""
