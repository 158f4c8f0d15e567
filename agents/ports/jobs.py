"""The door to what is known of jobs: which are under way, and when each mode was last gone through."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from schemas.jobs import JobProgress


class Jobs(Protocol):
    """The jobs of this worker's boundaries."""

    def last_backfill(self, boundary: str) -> Mapping[str, datetime]:
        """When each mode's vectors were last gone through to the end."""
        ...

    def under_way(self, boundary: str) -> Sequence[JobProgress]:
        """How far the jobs are that run now."""
        ...
