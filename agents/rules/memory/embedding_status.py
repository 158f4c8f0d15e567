"""Where a memory's vector stands after what happened to it: the record's `embedding`. Pure.

Every vector that is written is reported by an `Embedded`, so one that ended in a place where its memory no longer
belongs is always found, whatever overtook what.
"""

from agents.rules.categories.assignment import merge_assignments
from schemas.events import Embedded
from schemas.memories import Embedding, Memory, VectorLocation


def mark_pending(memory: Memory, error: str | None = None) -> Memory:
    """The memory with its vector due; the place of the last one is kept, so that it can be moved or removed."""
    return _with(memory, memory.embedding.model_copy(update={"status": "pending", "error": error}))


def mark_stale(memory: Memory) -> Memory:
    """The memory with a vector of another space than its mode has from now on."""
    return _with(memory, memory.embedding.model_copy(update={"status": "stale", "error": None}))


def apply_embedded(memory: Memory, event: Embedded) -> Memory:
    """The memory after the indexer has written its vector, or could not; an item is under what its vector fits, too."""
    if memory.item is not None and event.categories is not None:
        # What it is under already stays: this may have been looked at before a category was declared.
        under = merge_assignments(memory.item.categories, event.categories)
        memory = memory.model_copy(update={"item": memory.item.model_copy(update={"categories": under})})
    place = written_location(event) or memory.embedding.place
    return _with(
        memory,
        Embedding(
            status="ready" if event.status == "ready" else "failed",
            place=place,
            content_hash=event.content_hash,
            embedded_at=event.at,
            error=event.error,
        ),
    )


def written_location(event: Embedded) -> VectorLocation | None:
    """Where the vector of an event was written; None where none was."""
    return VectorLocation(mode=event.mode, space=event.space) if event.status == "ready" and event.space else None


def is_in_flight(memory: Memory) -> bool:
    """Whether the indexer has been told of a memory and has not answered yet."""
    return memory.embedding.status == "pending" and memory.embedding.error is None


def may_need_resend(memory: Memory) -> bool:
    """Whether a memory on its way may be one that the indexer was not told of: a worker was killed in between.

    Its words would say so, if there are any. One that never had a vector is known by its turn, which comes again.
    """
    return is_in_flight(memory) and memory.embedding.place is not None


def awaits_model(memory: Memory) -> bool:
    """Whether a memory waits for its mode's model: whoever sees that loaded tells the indexer."""
    return memory.embedding.status in ("stale", "pending") and not is_in_flight(memory)


def orphaned_location(memory: Memory, place: VectorLocation | None) -> VectorLocation | None:
    """The place that nobody empties when a vector is noted elsewhere; None where there is none.

    A vector on its way takes the record's place with it, to be emptied: one that was not expected may not know of it.
    """
    before = memory.embedding.place
    return None if is_in_flight(memory) or place in (None, before) else before


def _with(memory: Memory, embedding: Embedding) -> Memory:
    return memory.model_copy(update={"embedding": embedding})
