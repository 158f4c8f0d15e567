"""Decide what a maintenance job does with one memory, and classify the outcome. Pure."""

from typing import Literal

from agents.rules.memory.embedding_status import awaits_model, is_in_flight
from schemas.internal.changes import Job
from schemas.state.memories import Memory

MaintenanceAction = Literal["make", "await", "skip", "done", "fail"]
"""`make`: request the vector; `await`: it is in flight; `skip`: not concerned; `done`, `fail`: this job ended it."""

JobOutcome = Literal["processed", "skipped", "failed"]


def maintenance_action(job: Job, memory: Memory, digest: str | None, *, is_missing: bool = False) -> MaintenanceAction:
    """Return what the job does with a memory.

    `digest` names the vector space of the memory's mode, None while it is unknown; `is_missing`: the index lacks the
    vector that the record names.
    """
    embedding = memory.embedding
    if not _concerns(job, memory, digest, is_missing=is_missing):
        return "skip"
    if is_in_flight(memory):
        return "await"
    if job.kind in ("rebuild", "retry_failed") and _is_done(job, memory):
        return "done" if embedding.status == "ready" else "fail"
    return "fail" if digest is None else "make"


def job_outcome(before: Memory, now: Memory | None, digest: str | None) -> JobOutcome | None:
    """Return how the request for a memory's vector ended; None while it is pending."""
    if now is None:
        return "skipped"
    if awaits_model(now) and digest is None:
        return "failed"
    if now.embedding == before.embedding or now.embedding.status in ("pending", "stale"):
        return None
    return "processed" if now.embedding.status == "ready" else "failed"


def is_in_other_space(memory: Memory, digest: str | None) -> bool:
    """True if the memory's vector lies in another space than its mode's current one."""
    embedding = memory.embedding
    return embedding.status == "stale" or (embedding.status == "ready" and digest not in (None, embedding.space))


def _is_done(job: Job, memory: Memory) -> bool:
    """True if this job made the vector, or failed to, before it was interrupted and redelivered."""
    embedding = memory.embedding
    if embedding.status not in ("ready", "failed") or embedding.embedded_at is None:
        return False
    return embedding.embedded_at >= job.started_at


def _concerns(job: Job, memory: Memory, digest: str | None, *, is_missing: bool) -> bool:
    status = memory.embedding.status
    if status == "not_applicable" or job.kind == "retry_failed":
        return status == "failed"
    if job.kind == "rebuild":
        return True
    if status == "ready":
        return is_missing or is_in_other_space(memory, digest)
    return status in ("pending", "stale")
