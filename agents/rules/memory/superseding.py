"""Whether a distilled memory may stand for its turns, and what they and it are then. Pure."""

from collections.abc import Sequence
from typing import Literal

from schemas.consolidation import Distilled
from schemas.memories import Memory

SupersedeState = Literal["due", "done", "refused"]
"""It is to be written; it is there and stands for all its turns; or one of them is not any more what it was."""


def supersede_state(event: Distilled, known: Memory | None, sources: Sequence[Memory | None]) -> SupersedeState:
    """How it stands with what was distilled: `known` is its record, `sources` are those of its turns as they are."""
    there = [source for source in sources if source is not None]
    if len(there) < len(event.sources) or not all(_is_as_it_was(source, event) for source in there):
        return "refused"
    is_complete = known is not None and all(source.superseded_by == known.memory_id for source in there)
    return "done" if is_complete else "due"


def supersede_source(source: Memory, event: Distilled) -> Memory:
    """A turn that something else stands for."""
    return source.model_copy(update={"superseded_by": event.memory.memory_id, "superseded_in": event.run})


def restore_source(source: Memory) -> Memory:
    """A turn that stands for itself again."""
    return source.model_copy(update={"superseded_by": None, "superseded_in": None})


def can_supersede(item: Memory, older: Memory) -> bool:
    """Whether an item may still be given to another one: that stands, in the same place, and is of the same kind."""
    return (
        older.superseded_by is None
        and older.memory_id != item.memory_id
        and (older.scope, older.mode, older.type, older.origin) == (item.scope, item.mode, item.type, item.origin)
    )


def _is_as_it_was(source: Memory, event: Distilled) -> bool:
    new = event.memory
    return (
        source.origin == "said"
        and source.scope == new.scope
        and source.mode == new.mode
        and source.content_hash == event.sources[source.memory_id]
        and source.superseded_by in (None, new.memory_id)
    )
