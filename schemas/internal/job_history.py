"""The jobs of one boundary: the value of the table `jobs`. When modes were last backfilled, and the last jobs' answers.

A job is found under its id by any gateway, also after a restart of the worker. Its answer is the value of the reply
that the run itself gives, as JSON.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import accumulate
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BaseModel, Field
from pydantic_core import from_json, to_json

from schemas.failures import Rejected
from schemas.messages.replies import encode_error
from schemas.moments import iso, moment_of

MaintenanceJob = Literal["reconcile", "retry_failed", "verify"]

MAINTENANCE_JOBS: tuple[MaintenanceJob, ...] = get_args(MaintenanceJob)
"""Jobs of each user, in the order in which they run."""

MaintenanceTask = Literal[MaintenanceJob, "backup"]

Hours = Annotated[float, Field(gt=0, allow_inf_nan=False)]

Schedule = Mapping[MaintenanceTask, Hours]
"""Hours between two runs of each scheduled task."""


MAX_STORED_JOBS = 32
"""Maximum jobs of a boundary that are remembered, the last ones."""

MAX_ANSWER_BYTES = 4 * 1024 * 1024
"""Serialised bytes of their answers together: a consolidation of 50,000 turns answers 2 MB, a job 200 bytes. The whole
row is rewritten with each job."""


MAX_SUMMARISED_CHARS = 64 * 1024
"""Characters of an answer whose counts are shown: reading it takes a fraction of a millisecond."""

MAX_STATUS_CHARS = 64
"""Characters at the beginning of an answer that hold its status."""


class StoredJob(BaseModel, frozen=True):
    """A job; `answer` is None while it runs. `project` is None if it covers all projects.

    `at_ms` is the timestamp of its record: a recreated topic has the same ids again. `forgets_texts`: memories were
    forgotten since it began, so its answer is stored without texts.
    """

    job_id: str
    project: str | None
    at_ms: int
    answer: str | None = None
    forgets_texts: bool = Field(default=False, exclude_if=lambda forgets: not forgets)
    progress: dict[str, int] | None = Field(default=None, exclude_if=lambda progress: progress is None)
    """Of an import, which runs outside of the worker: the counts of its last report, made at `at_ms`."""

    @property
    def kind(self) -> str:
        """What was asked for."""
        return self.job_id.rsplit("-", 2)[0]

    @property
    def at(self) -> datetime:
        """The time of its record."""
        return moment_of(self.at_ms)

    def answered(self, answer: bytes) -> Self:
        """Return the job with its answer; a too large one is replaced by an error that says so."""
        if len(answer) > MAX_ANSWER_BYTES:
            message = f"the job is done; its answer has {len(answer)} bytes, at most {MAX_ANSWER_BYTES} are kept"
            answer = encode_error(Rejected("too_large", message))
        done = self.model_copy(update={"answer": answer.decode()})
        return done.without_texts() if self.forgets_texts else done

    def without_texts(self) -> Self:
        """Return the job without the texts of memories in its answer, present or future."""
        if self.progress is not None:
            # An import's answer has none; it comes from its sender.
            return self
        if self.answer is None:
            return self.model_copy(update={"forgets_texts": True})
        answer = from_json(self.answer)
        for difference in (answer.get("result") or {}).get("diff", ()):
            difference |= {"before": None, "after": None}
        return self.model_copy(update={"answer": to_json(answer).decode()})

    def body(self) -> dict[str, Any]:
        """Return the result of `get_job`."""
        answer = {} if self.answer is None else from_json(self.answer)
        state = {None: "running", "ok": "done"}.get(answer.get("status"), "failed")
        parts = {name: answer.get(name) for name in ("result", "error")}
        reported = {} if self.progress is None else {"progress": self.progress, "reported_at_ms": self.at_ms}
        return {"job_id": self.job_id, "state": state, **parts, "warnings": answer.get("warnings", []), **reported}

    def summary(self) -> dict[str, Any]:
        """Return the job, its time and outcome, with counts alone: nothing of a memory.

        `compared` is present for a comparison of embedders: its result by mode.
        """
        shown = {"job_id": self.job_id, "command": self.kind, "at": iso(moment_of(self.at_ms)), "project": self.project}
        if self.answer is not None and len(self.answer) > MAX_SUMMARISED_CHARS:
            is_done = '"status":"ok"' in self.answer[:MAX_STATUS_CHARS]
            return {**shown, "state": "done" if is_done else "failed", "counts": {}, "error": None}
        body = self.body()
        result = body["result"] or {}
        compared = {"compared": result["compared"]} if "compared" in result else {}
        # The numbers of the result, and the lengths of its lists.
        lengths = {name: len(value) if isinstance(value, list) else value for name, value in result.items()}
        counts = {name: value for name, value in lengths.items() if isinstance(value, int) and name != "diff"}
        counts = counts or self.progress or {}
        return {**shown, "state": body["state"], "counts": counts, "error": body["error"], **compared}


class JobHistory(BaseModel, frozen=True):
    """`last`: when a backfill or rebuild last finished in each mode; `stored`: the last jobs, the oldest first.

    `scheduled` has the last scheduled job of each kind. It takes no place of those that were asked for.
    """

    last: dict[str, datetime] = Field(default_factory=dict)
    stored: tuple[StoredJob, ...] = ()
    scheduled: dict[str, StoredJob] = Field(default_factory=dict, exclude_if=lambda jobs: not jobs)

    def find(self, job_id: str) -> StoredJob | None:
        return next((job for job in (*self.stored, *self.scheduled.values()) if job.job_id == job_id), None)

    def scheduled_begun(self, kind: str, job: StoredJob) -> Self:
        """Take a scheduled job in place of the last one of its kind, unless it is there."""
        before = self.scheduled.get(kind)
        if before is not None and before.job_id == job.job_id:
            return self
        return self.model_copy(update={"scheduled": {**self.scheduled, kind: job}})

    def begun(self, job: StoredJob) -> Self:
        """Add a job, unless it is there: its record was delivered again."""
        same_id = self.find(job.job_id)
        if same_id is not None and same_id.at_ms == job.at_ms:
            return self
        others = (stored for stored in self.stored if stored is not same_id)
        return self.model_copy(update={"stored": (*others, job)[-MAX_STORED_JOBS:]})

    def reported(self, job: StoredJob) -> Self:
        """Take a report about an import: its counts never decrease, and an ended one stays ended."""
        earlier = self.find(job.job_id)
        if earlier is None:
            return self._with((*self.stored, job)[-MAX_STORED_JOBS:])
        if earlier.answer is not None:
            return self
        before = earlier.progress or {}
        progress = {name: max(count, before.get(name, 0)) for name, count in (job.progress or {}).items()}
        latest = job.model_copy(update={"progress": progress})
        return self._with(latest if stored is earlier else stored for stored in self.stored)

    def ended(self, job_id: str, answer: bytes) -> Self:
        """Add the answer of a job, unless the job was dropped meanwhile."""
        scheduled = {
            kind: job.answered(answer) if job.job_id == job_id else job for kind, job in self.scheduled.items()
        }
        stored = self._with(job.answered(answer) if job.job_id == job_id else job for job in self.stored)
        return stored.model_copy(update={"scheduled": scheduled})

    def _with(self, jobs: Iterable[StoredJob]) -> Self:
        """Return the history with these jobs, without the oldest answers beyond the limit."""
        stored = list(jobs)
        sizes = accumulate(len(job.answer or "") for job in reversed(stored))
        fits = [size <= MAX_ANSWER_BYTES for size in sizes][::-1]
        latest = tuple(job for job, is_within in zip(stored, fits, strict=True) if is_within or job.answer is None)
        return self.model_copy(update={"stored": latest})

    def without_texts(self) -> Self:
        return self.model_copy(update={"stored": tuple(job.without_texts() for job in self.stored)})
