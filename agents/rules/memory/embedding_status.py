"""State transitions of a memory's `embedding`, and the action of a maintenance job for each state. Pure.

Every written vector is reported by an `Embedded` event, so a vector that was written to an outdated location is always
found, in whatever order events arrive.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any, Literal

from agents.rules.categories.assignment import merge_assignments
from schemas.internal.changes import Job
from schemas.internal.events import Embedded
from schemas.state.memories import Embedding, Memory, VectorLocation

NO_ERROR: dict[str, Any] = {"error": None, "error_code": None, "error_at": None}


def mark_pending(memory: Memory) -> Memory:
    """Mark the vector as due; the last vector's location stays, so that it can be moved or removed."""
    return _with(memory, memory.embedding.model_copy(update={"status": "pending", **NO_ERROR}))


def mark_stale(memory: Memory) -> Memory:
    """Mark the vector as outdated, of another space than the mode's; searches of that space still find it."""
    before = memory.embedding
    valid = () if before.space is None or before.content_hash != memory.content_hash else (before.space,)
    held = tuple(dict.fromkeys((*valid, *before.held)))
    return _with(memory, before.model_copy(update={"status": "stale", **NO_ERROR, "held": held}))


def replace_held(memory: Memory, held: tuple[str, ...] = ()) -> Memory:
    """Return the memory with vectors in these spaces in addition to its mode's current one."""
    if memory.embedding.held == held:
        return memory
    return _with(memory, memory.embedding.model_copy(update={"held": held}))


def with_held(memory: Memory, location: VectorLocation | None) -> Memory:
    """Return the memory with a further vector of its text in this location, if that is one of its mode."""
    if location is None or location.mode != memory.mode:
        return memory
    held = tuple(dict.fromkeys((*memory.embedding.held, location.space)))
    return _with(memory, memory.embedding.model_copy(update={"held": held}))


def mark_not_applicable(memory: Memory) -> Memory:
    """Mark the memory as one without a vector; the last vector's location stays, so that it can be removed."""
    return _with(memory, Embedding(status="not_applicable", place=memory.embedding.place))


def apply_embedded(memory: Memory, event: Embedded) -> Memory:
    """Record that the vector was written or failed; add the categories that an item's vector fits."""
    if memory.item is not None and event.categories is not None:
        # Merge: the event may predate the declaration of a category, and must not remove it.
        categories = merge_assignments(memory.item.categories, event.categories)
        memory = memory.model_copy(update={"item": memory.item.model_copy(update={"categories": categories})})
    embedding = Embedding(
        status="ready" if event.status == "ready" else "failed",
        place=written_location(event) or memory.embedding.place,
        content_hash=event.content_hash,
        embedded_at=event.at,
        error=event.error,
        error_code=event.code,
        error_at=_error_since(memory.embedding, event),
        held=tuple(space for space in event.held if space != event.space),
    )
    return _with(memory, embedding)


def written_location(event: Embedded) -> VectorLocation | None:
    """Return the location of the event's vector; None if it was not written."""
    return VectorLocation(mode=event.mode, space=event.space) if event.status == "ready" and event.space else None


def reported_location(event: Embedded) -> VectorLocation | None:
    """Return a location with a vector of the event's text, written or held; None without one.

    If it is not wanted, all vectors of the memory in collections of that mode are removed.
    """
    held = VectorLocation(mode=event.mode, space=event.held[0]) if event.held else None
    return written_location(event) or held


def is_located(memory: Memory, location: VectorLocation) -> bool:
    is_held = location.mode == memory.mode and location.space in memory.embedding.held
    return is_held or memory.embedding.place == location


def mark_waiting(memory: Memory, event: Embedded) -> Memory:
    """Mark the vector as waiting for the mode's model; the former embedder's may exist.

    That is its last known location then: the request has removed the vector of another mode.
    """
    before = memory.embedding
    location = reported_location(event) or before.place
    error = {"error": event.error, "error_code": event.code, "error_at": _error_since(before, event)}
    changes = {"status": "pending", "place": location, "held": event.held, **error}
    return _with(memory, before.model_copy(update=changes))


def _error_since(before: Embedding, event: Embedded) -> datetime | None:
    """Return the time of an event's error: of one that the record has already, its own."""
    if event.error is None:
        return None
    is_same = before.error_code == event.code and before.error_at is not None
    return before.error_at if is_same else event.at


def is_compared_vector(memory: Memory, event: Embedded) -> bool:
    """True if the record has the vector reported by a comparison with the index.

    A kept one may be the present one: the present one at that time was released since the comparison.
    """
    present = memory.embedding
    is_present = (present.place, present.content_hash) == (_compared_location(event), event.content_hash)
    return event.space in present.held or (event.status == "kept" and is_present)


def apply_kept(memory: Memory, event: Embedded) -> Memory:
    """Record that the due vector was already in the index, one of those that the memory holds.

    The memory may not be marked yet: the comparison can be ahead of the change begun by its mode's declaration.
    """
    before = (mark_stale(memory) if memory.embedding.status == "ready" else memory).embedding
    at_once = before.model_copy(
        update={
            "status": "ready",
            "place": _compared_location(event),
            "content_hash": event.content_hash,
            "embedded_at": before.embedded_at or event.at,
            **NO_ERROR,
            "held": tuple(space for space in before.held if space != event.space),
        }
    )
    return _with(memory, at_once)


def _compared_location(event: Embedded) -> VectorLocation:
    return VectorLocation(mode=event.mode, space=event.space or "")


def without_lost(memory: Memory, event: Embedded) -> Memory:
    return replace_held(memory, tuple(space for space in memory.embedding.held if space != event.space))


def report_of(memory: Memory, status: Literal["kept", "lost"], space: str, at: datetime) -> Embedded:
    """Return the event of a comparison with the index, about a vector other than the present one."""
    return Embedded(
        memory_id=memory.memory_id,
        content_hash=memory.content_hash,
        latest=memory.latest if memory.origin == "said" else None,
        mode=memory.mode,
        status=status,
        space=space,
        at=at,
    )


def unkept_event(memory: Memory, at: datetime) -> Embedded:
    """Return the event of a memory whose vector the deployment does not keep."""
    return Embedded(
        memory_id=memory.memory_id, content_hash=memory.content_hash, mode=memory.mode, status="unkept", at=at
    )


def is_about_earlier_edit(memory: Memory, event: Embedded) -> bool:
    """True if the text was replaced after this event's text, and has come back since if it is the same.

    The event of the current text follows, and until then the index may hold the vector of the intermediate text.
    """
    return event.latest is not None and event.latest != memory.latest


def is_in_flight(memory: Memory) -> bool:
    """True if the indexer was notified and has not answered yet."""
    return memory.embedding.status == "pending" and memory.embedding.error is None


def awaits_model(memory: Memory) -> bool:
    """True if the vector waits for the mode's model to load."""
    return memory.embedding.status in ("stale", "pending") and not is_in_flight(memory)


def orphaned_location(
    memory: Memory, location: VectorLocation | None, held: Collection[str] = ()
) -> VectorLocation | None:
    """Return the location that still holds an outdated vector once the vector is at `location`; None without one.

    An in-flight request carries the record's location, and its vector is removed from there. An unexpected vector may
    have been requested before that location was known. Vectors in the spaces of `held` are kept.
    """
    before = memory.embedding.place
    is_kept = before is None or (before.mode == memory.mode and before.space in held)
    return None if is_kept or is_in_flight(memory) or location in (None, before) else before


def _with(memory: Memory, embedding: Embedding) -> Memory:
    return memory.model_copy(update={"embedding": embedding})


MaintenanceAction = Literal["make", "await", "skip", "done", "fail"]
"""`make`: request the vector; `await`: it is in flight; `skip`: not concerned; `done`, `fail`: this job ended it."""

JobOutcome = Literal["processed", "skipped", "failed"]


def maintenance_action(job: Job, memory: Memory, digest: str | None, *, is_missing: bool = False) -> MaintenanceAction:
    """Return the job's action for a memory.

    `digest` names the vector space of the memory's mode, None while it is unknown; `is_missing`: the index lacks the
    vector named by the record.
    """
    embedding = memory.embedding
    if not _concerns(job, memory, digest, is_missing=is_missing):
        return "skip"
    if is_in_flight(memory):
        return "await"
    is_later = embedding.embedded_at is not None and embedding.embedded_at >= job.started_at
    if job.kind in ("rebuild", "retry_failed") and embedding.status in ("ready", "failed") and is_later:
        # This job made the vector, or failed to, before it was interrupted and redelivered.
        return "done" if embedding.status == "ready" else "fail"
    return "fail" if digest is None else "make"


def job_outcome(before: Memory, now: Memory | None, digest: str | None) -> JobOutcome | None:
    """Return the outcome of the request for a memory's vector; None while it is pending."""
    if now is None:
        return "skipped"
    if now.embedding.status == "not_applicable":
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


def _concerns(job: Job, memory: Memory, digest: str | None, *, is_missing: bool) -> bool:
    status = memory.embedding.status
    if status == "not_applicable" or job.kind == "retry_failed":
        return status == "failed"
    if job.kind == "rebuild":
        return True
    if status == "ready":
        return is_missing or is_in_other_space(memory, digest)
    return status in ("pending", "stale")
