"""Supersede turns by a distilled memory, and older items by newer ones. Pure."""

from collections.abc import Sequence
from typing import Literal

from schemas.internal.consolidation import Distilled
from schemas.state.memories import Memory

SupersedeState = Literal["due", "done", "refused"]
"""`due`: still to be written; `done`: written, and all turns are superseded; `refused`: a turn has changed since."""


def supersede_state(event: Distilled, known: Memory | None, sources: Sequence[Memory | None]) -> SupersedeState:
    """Return the state of a distilled memory; `known` is its record, `sources` are its turns' current records."""
    present = [source for source in sources if source is not None]
    if len(present) < len(event.sources) or not all(_is_unchanged(source, event) for source in present):
        return "refused"
    is_complete = known is not None and all(source.superseded_by == known.memory_id for source in present)
    return "done" if is_complete else "due"


def supersede_source(source: Memory, event: Distilled) -> Memory:
    """Mark a turn as superseded by the event's distilled memory."""
    return source.model_copy(update={"superseded_by": event.memory.memory_id, "superseded_in": event.run})


def restore_source(source: Memory) -> Memory:
    """Mark a turn as no longer superseded."""
    return source.model_copy(update={"superseded_by": None, "superseded_in": None})


def can_supersede(item: Memory, older: Memory) -> bool:
    """True if `older` is current and shares the item's scope, mode, type, origin and visibility."""
    return (
        older.superseded_by is None
        and older.memory_id != item.memory_id
        and older.visibility == item.visibility
        and (older.scope, older.mode, older.type, older.origin) == (item.scope, item.mode, item.type, item.origin)
    )


def _is_unchanged(source: Memory, event: Distilled) -> bool:
    new = event.memory
    return (
        source.origin == "said"
        and source.scope == new.scope
        and source.mode == new.mode
        and source.visibility == new.visibility
        and source.content_hash == event.sources[source.memory_id]
        and source.superseded_by in (None, new.memory_id)
    )
