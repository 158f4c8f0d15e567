"""Visibility of memories: hard filters, the memories that a change affects, and the views of commands. Pure.

A memory that is not searchable is in its own index (`Memory.index_name`), which no search reads, and its vector
is due to be removed. A private one does not wait for a language model.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from agents.rules.index.columns import MISSING, Mask
from agents.rules.index.memory_columns import TURN_TYPE, MemoryColumns, MemoryKind
from agents.rules.memory.embedding_status import is_in_flight, mark_not_applicable
from schemas.internal.changes import Change, Job
from schemas.models.vectors import MemoryFilter
from schemas.moments import iso, milliseconds_of
from schemas.scopes import PROJECT_FIELD
from schemas.state.memories import Embedding, Memory
from schemas.state.modes import EVERYWHERE, Mode, ModeDeclarations, Visibility


def mode_visibility(memory: Memory, declared: ModeDeclarations) -> Visibility:
    """Return the declared filters of the memory's mode; a deleted mode filters nothing."""
    mode = declared.find(memory.mode, memory.scope[PROJECT_FIELD])
    return EVERYWHERE if mode is None else mode.visibility


def may_show_model(memory: Memory, declared: ModeDeclarations) -> bool:
    """True if a language model may read the memory now.

    By its record and by its mode: after a declaration it takes a moment until all records have the change.
    """
    return not memory.visibility.private and not mode_visibility(memory, declared).private


def own_after_turn(searchable: bool | None, private: bool | None, stored: Memory | None) -> Visibility:
    """Return a turn's own visibility: as published, else that of the memory `stored` that it edits."""
    before = EVERYWHERE if stored is None else stored.own_visibility
    return before.changed(searchable=searchable, private=private)


def own_after_change(memory: Memory, change: Change) -> Visibility:
    """Return a memory's own visibility after a change; a change of a mode leaves it."""
    if change.action != "filter" or not change.ids:
        return memory.own_visibility
    return memory.own_visibility.changed(searchable=change.searchable, private=change.private)


def with_visibility(memory: Memory, own: Visibility, of_mode: Visibility, *, asks_model: bool = False) -> Memory:
    """Return the memory with this own visibility, limited by that of its mode.

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
    """Return the memory waiting for a language model, or no longer waiting, if its visibility has changed that."""
    status = memory.reading.status
    if memory.visibility.private and status == "pending":
        status = "rules"
    elif (
        was_private
        and not memory.visibility.private
        and memory.origin == "said"
        # No language model was asked about its text.
        and memory.reading.status == "rules"
        and memory.reading.model is None
        and asks_model
    ):
        status = "pending"
    else:
        return memory
    return memory.model_copy(update={"reading": memory.reading.model_copy(update={"status": status})})


def item_visibility(turn: Memory, before: Memory | None) -> Visibility:
    """Return the visibility of a turn's item; `before` is its record, if it has one.

    An item that a user has moved to another mode than its turn's keeps that mode's filters.
    """
    if before is None or before.origin != "extracted" or before.mode == turn.mode:
        return turn.visibility
    return turn.visibility.limited_by(before.visibility)


def awaits_indexer(memory: Memory) -> bool:
    """True if the indexer may not know the memory's state: its vector is in flight, or due to be removed."""
    is_unsearchable = not memory.visibility.searchable
    return is_in_flight(memory) or (is_unsearchable and memory.embedding.place is not None)


_INTERNAL = {
    "boundary",
    "source",
    "latest",
    "latest_at",
    "versions",
    "dropped_versions",
    "current",
    "reading",
    "item",
    "items_apart",
    "superseded_in",
    "superseded_at",
    "first_accepted_at",
    "visibility",
    "own_visibility",
}
"""Fields of a record that are internal, or are returned in another form."""


def build_memory_view(memory: Memory) -> dict[str, Any]:
    """Return the record as `get_memory` shows it, its understanding and versions flattened into it.

    A turn with items has their ids in `items`; extracted and distilled memories have the fields of `Item`.
    """
    view = memory.model_dump(mode="json", exclude=_INTERNAL)
    if not memory.items:
        view.pop("items")
    if memory.item is not None:
        view |= memory.item.model_dump(mode="json", exclude={"supports", "claim", "run", "turn_mode"}) | {
            "valid_from": memory.item.valid_from and iso(memory.item.valid_from),
            "valid_until": memory.item.valid_until and iso(memory.item.valid_until),
        }
    reading = memory.reading.model_dump(
        mode="json",
        exclude={"status", "text_hash", "interaction", "is_corrected", "aims", "revision", "tried", "refreshed"},
    )
    interaction = memory.reading.interaction
    current = memory.versions[memory.current]
    versions = [
        {"version": number, "current": version is current, **version.model_dump(mode="json")}
        for number, version in enumerate(memory.versions, memory.dropped_versions + 1)
    ]
    understanding = {
        **reading,
        "understanding": memory.reading.status,
        "interaction_mode": interaction and interaction.mode,
        "interaction_confidence": interaction and round(interaction.confidence, 3),
        "interaction_corrected": memory.reading.is_corrected,
        **({"taxonomy_version": interaction.taxonomy} if interaction and interaction.taxonomy else {}),
        **({"understood_by_revision": memory.reading.revision} if memory.reading.revision else {}),
    }
    own = memory.own_visibility
    visibility = {
        "searchable": memory.visibility.searchable,
        "private": memory.visibility.private,
        "own_visibility": {"searchable": own.searchable, "private": own.private},
    }
    version = {"version": memory.version, "versions": versions, "occurred_at": iso(memory.occurred_at)}
    version["accepted_at"] = iso(memory.accepted_at)
    return view | understanding | visibility | version


MAX_EXAMPLE_CHARS = 200
"""Characters of a text that a dry run shows: enough to recognise it."""


def build_example(memory: Memory) -> dict[str, Any]:
    """Return a memory as a dry run of `forget` shows it."""
    names = ("memory_id", "turn_id", "conversation_id", "type", "mode", "role", "speaker")
    shown = {name: getattr(memory, name) for name in names}
    return shown | {"text": memory.text[:MAX_EXAMPLE_CHARS], "occurred_at": iso(memory.occurred_at)}


def build_mode_view(mode: Mode, declared: ModeDeclarations, project: str) -> dict[str, Any]:
    """Return a mode as `declare_mode` and `list_modes` show it; `is_default`: the default of this project's turns."""
    return mode.model_dump(mode="json", exclude={"formerly", "embedded_since", "filtered_since", "former"}) | {
        "is_default": declared.default(project)[0] == mode.name,
        "former_embedder": mode.former.embedder if mode.former else None,
    }


def list_ids(memories: MemoryColumns) -> list[str]:
    return _ids(memories, memories.columns.live)


def list_ids_in_scope(memories: MemoryColumns, scope: Mapping[str, str]) -> list[str]:
    return _ids(memories, _of_kind(memories, lambda kind: dict(kind.scope) == scope))


def list_ids_in_mode(memories: MemoryColumns, mode: str | None) -> list[str]:
    return _ids(memories, _of_kind(memories, lambda kind: kind.mode == mode))


def list_ids_of_job(memories: MemoryColumns, job: Job) -> list[str]:
    """Return the memories that a job covers: of its scope or of the boundary, in one mode or in all."""
    scope = None if job.all_projects else job.scope.model_dump()
    covers = lambda kind: job.mode in (None, kind.mode) and scope in (None, dict(kind.scope))  # noqa: E731
    return _ids(memories, _of_kind(memories, covers))


def list_superseded_ids(memories: MemoryColumns, scope: Mapping[str, str]) -> list[str]:
    return _ids(memories, _of_kind(memories, lambda kind: dict(kind.scope) == scope) & memories.columns.superseded)


def list_matching_turns(memories: MemoryColumns, change: Change) -> list[str]:
    """Return the turns of the scope that the change's filters and times admit."""
    where = MemoryFilter(
        boundary=change.scope.boundary,
        scope={name: (value,) for name, value in change.scope.model_dump().items()},
        types=(TURN_TYPE,),
        since_ms=None if change.since is None else milliseconds_of(change.since),
        until_ms=None if change.until is None else milliseconds_of(change.until),
        filters=change.filters,
    )
    return _ids(memories, memories.admitted(where, include_superseded=True))


def list_conversations(memories: MemoryColumns, scope: Mapping[str, str]) -> list[list[str]]:
    """Return the turns of one scope, grouped by conversation; the turns' records name the conversation."""
    turns_by_conversation: defaultdict[int, list[str]] = defaultdict(list)
    in_scope = _of_kind(memories, lambda kind: dict(kind.scope) == scope) & (memories.columns.conversations != MISSING)
    for number in np.flatnonzero(in_scope).tolist():
        turns_by_conversation[int(memories.columns.conversations[number])].append(memories.id_of[number])
    return list(turns_by_conversation.values())


def is_distilled_from(memory: Memory, turn: Memory) -> bool:
    return memory.origin == "distilled" and any(quote.memory_id == turn.memory_id for quote in memory.evidence)


def is_affected(memory: Memory, change: Change) -> bool:
    """True if the change still applies to the memory; a redelivered change may have been applied already."""
    first, end = change.turns_before, change.turns_until
    if first is not None and end is not None and first <= memory.source < end:
        # The turn, or an item's latest turn, was published after the command and applied before its change.
        return False
    if change.whole == "user":
        return memory.boundary == change.scope.boundary
    if change.ids or change.conversation_id or change.filters or change.whole:
        return memory.scope == change.scope.model_dump()
    if memory.scope[PROJECT_FIELD] in change.except_projects or change.project not in (
        None,
        memory.scope[PROJECT_FIELD],
    ):
        return False
    return memory.mode in (change.mode, change.to)


def _of_kind(memories: MemoryColumns, matches: Callable[[MemoryKind], bool]) -> Mask:
    mask: Mask = memories.columns.live & memories.of_kind(matches).astype(np.bool_)
    return mask


def _ids(memories: MemoryColumns, mask: Mask) -> list[str]:
    return [memories.id_of[number] for number in np.flatnonzero(mask).tolist()]
