"""`job.v1`: long-running work on a boundary's vectors. The commands agent writes it, `Maintain` carries it out.

Its record carries the headers of the command, so that the command is answered when the job is done.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from pydantic import BaseModel, Field

from schemas.scopes import Scope

JobKind = Literal["backfill", "rebuild", "reconcile", "retry_failed"]

JOB_KINDS: tuple[JobKind, ...] = get_args(JobKind)
"""The commands that start a job."""


class Job(BaseModel, frozen=True, populate_by_name=True, extra="ignore"):
    """One job. Vectors made since `started_at` count as made by it, also before an interruption and redelivery."""

    schema_: Literal["job.v1"] = Field(default="job.v1", alias="schema")
    scope: Scope
    job_id: str
    kind: JobKind | Literal["consolidate"]
    mode: str | None = None
    started_at: datetime


class BackfillTimes(BaseModel, frozen=True):
    """When a backfill or rebuild last finished in each mode of a boundary: the value of the table `jobs`."""

    last: dict[str, datetime] = Field(default_factory=dict)


@dataclass(slots=True)
class JobProgress:
    """A job's progress: of `total` memories, those that got a vector, needed none, or failed.

    `stale_cleared` counts those of `processed` with a vector of another space or a missing one before; `orphans` counts
    vectors without a memory.
    """

    job: Job
    total: int = 0
    processed: int = 0
    skipped: int = 0
    failed: int = 0
    stale_cleared: int = 0
    orphans: int = 0
