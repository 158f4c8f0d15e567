"""The hard filters of a memory: what its mode and what it has of its own, and what follows for vector and model. Pure.

A memory that is not searchable is in an index of its own (`Memory.index_name`), which no search reads, and its vector
is due to be removed. A private one does not wait for a language model.
"""

from agents.rules.memory.embedding_status import is_in_flight, mark_not_applicable
from schemas.internal.changes import Change
from schemas.scopes import PROJECT_FIELD
from schemas.state.memories import Embedding, Memory
from schemas.state.modes import ModeDeclarations
from schemas.state.visibility import EVERYWHERE, Visibility


def mode_visibility(memory: Memory, declared: ModeDeclarations) -> Visibility:
    """Return what the memory's mode is declared with; that of a mode which is gone limits nothing."""
    mode = declared.find(memory.mode, memory.scope[PROJECT_FIELD])
    return EVERYWHERE if mode is None else mode.visibility


def may_show_model(memory: Memory, declared: ModeDeclarations) -> bool:
    """True if a language model may read the memory now.

    By its record and by its mode: after a declaration it takes a moment until all records have it.
    """
    return not memory.visibility.private and not mode_visibility(memory, declared).private


def own_after_turn(searchable: bool | None, private: bool | None, known: Memory | None) -> Visibility:
    """Return a turn's own visibility: as published, else that of the memory `known` that it edits."""
    before = EVERYWHERE if known is None else known.own_visibility
    return before.changed(searchable=searchable, private=private)


def own_after_change(memory: Memory, change: Change) -> Visibility:
    """Return a memory's own visibility after a change; a change of a mode leaves it."""
    if change.action != "filter" or not change.ids:
        return memory.own_visibility
    return memory.own_visibility.changed(searchable=change.searchable, private=change.private)


def with_visibility(memory: Memory, own: Visibility, of_mode: Visibility, *, asks_model: bool = False) -> Memory:
    """Return the memory with this visibility of its own, limited by that of its mode.

    `asks_model`: a turn that is no longer private is due to be read by a language model, unless one has read it.
    """
    now, before = own.limited_by(of_mode), memory.visibility
    if now == EVERYWHERE == before and own == memory.own_visibility:
        return memory
    updated = memory.model_copy(update={"own_visibility": own, "visibility": now})
    updated = with_reading_status(updated, was_private=before.private, asks_model=asks_model)
    return with_applicable_embedding(updated)


def with_applicable_embedding(memory: Memory) -> Memory:
    """Return the memory with a vector that is due or present if it is searchable, otherwise with none."""
    is_applicable = memory.embedding.status != "not_applicable"
    if memory.visibility.searchable is is_applicable:
        return memory
    if is_applicable:
        return mark_not_applicable(memory)
    return memory.model_copy(update={"embedding": Embedding(place=memory.embedding.place)})


def with_reading_status(memory: Memory, *, was_private: bool, asks_model: bool) -> Memory:
    """Return the memory waiting for a language model, or not, where its visibility has changed that."""
    status = memory.reading.status
    if memory.visibility.private and status == "pending":
        status = "rules"
    elif (
        was_private and not memory.visibility.private and memory.origin == "said" and _is_unread(memory) and asks_model
    ):
        status = "pending"
    else:
        return memory
    return memory.model_copy(update={"reading": memory.reading.model_copy(update={"status": status})})


def _is_unread(memory: Memory) -> bool:
    """True if no language model was asked about a turn's text."""
    return memory.reading.status == "rules" and memory.reading.model is None


def item_visibility(turn: Memory, before: Memory | None) -> Visibility:
    """Return the visibility of a turn's item; `before` is its record, if it has one.

    An item that a user has moved to another mode than its turn's keeps what that mode adds.
    """
    if before is None or before.origin != "extracted" or before.mode == turn.mode:
        return turn.visibility
    return turn.visibility.limited_by(before.visibility)


def awaits_indexer(memory: Memory) -> bool:
    """True if the indexer may not know the memory's state: its vector is in flight, or due to be removed."""
    is_unsearchable = not memory.visibility.searchable
    return is_in_flight(memory) or (is_unsearchable and memory.embedding.place is not None)
