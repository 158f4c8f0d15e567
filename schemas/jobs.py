"""`job.v1`: work on all vectors of a boundary, which takes as long as it takes. `govern` writes it, `maintain` does it.

The record that carries it has the headers of the command, so that the command is answered when the job is done.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from schemas.scopes import Scope

JobKind = Literal["backfill", "rebuild", "reconcile", "retry_failed"]

JOB_KINDS: tuple[JobKind, ...] = get_args(JobKind)
"""The commands that are jobs."""


class Job(BaseModel):
    """One job. What was embedded since `started_at` was embedded by it, also before it was cut off and came again."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, extra="ignore")

    schema_: Literal["job.v1"] = Field(default="job.v1", alias="schema")
    scope: Scope
    job_id: str
    kind: JobKind | Literal["consolidate"]
    mode: str | None = None
    started_at: datetime


class BackfillTimes(BaseModel):
    """When the vectors of each mode of a boundary were last gone through to the end: the value of the table `jobs`."""

    model_config = ConfigDict(frozen=True)

    last: dict[str, datetime] = Field(default_factory=dict)


@dataclass(slots=True)
class JobProgress:
    """How far a job is: of `total` memories so many got their vector, needed none, or could get none.

    `stale_cleared` of those that got it had one of another space, or none where it should lie. `orphans` are vectors
    that no memory wanted.
    """

    job: Job
    total: int = 0
    processed: int = 0
    skipped: int = 0
    failed: int = 0
    stale_cleared: int = 0
    orphans: int = 0
