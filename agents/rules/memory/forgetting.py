"""Select the memories that a change affects. Pure.

Enters: a boundary's memory columns, a scope, records. Leaves: ids, in column order.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from agents.rules.index.columns import MISSING, Mask
from agents.rules.index.memory_columns import MemoryColumns, MemoryKind
from schemas.internal.changes import Change, Job
from schemas.scopes import PROJECT_FIELD
from schemas.state.memories import Memory


def list_ids(memories: MemoryColumns) -> list[str]:
    """Return all memories of the boundary."""
    return _ids(memories, memories.columns.live)


def list_ids_with_scope(memories: MemoryColumns) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield all memories of the boundary, each with its scope."""
    scopes = {number: dict(kind.scope) for kind, number in memories.kinds.items()}
    numbers = np.flatnonzero(memories.columns.live)
    kinds = memories.columns.kinds[numbers].tolist()
    return ((memories.id_of[number], scopes[kind]) for number, kind in zip(numbers.tolist(), kinds, strict=True))


def list_ids_in_scope(memories: MemoryColumns, scope: Mapping[str, str]) -> list[str]:
    """Return all memories of one scope."""
    return _ids(memories, _of_kind(memories, lambda kind: dict(kind.scope) == scope))


def list_ids_in_mode(memories: MemoryColumns, mode: str | None) -> list[str]:
    """Return all memories of one mode."""
    return _ids(memories, _of_kind(memories, lambda kind: kind.mode == mode))


def list_ids_of_job(memories: MemoryColumns, job: Job) -> list[str]:
    """Return the memories that a job covers: of its scope or of the boundary, in one mode or in all."""
    scope = None if job.all_projects else job.scope.model_dump()
    covers = lambda kind: job.mode in (None, kind.mode) and scope in (None, dict(kind.scope))  # noqa: E731
    return _ids(memories, _of_kind(memories, covers))


def list_superseded_ids(memories: MemoryColumns, scope: Mapping[str, str]) -> list[str]:
    """Return the superseded memories of one scope."""
    return _ids(memories, _of_kind(memories, lambda kind: dict(kind.scope) == scope) & memories.columns.superseded)


def list_conversations(memories: MemoryColumns, scope: Mapping[str, str]) -> list[list[str]]:
    """Return the turns of one scope, grouped by conversation; the turns' records name the conversation."""
    turns_by_conversation: defaultdict[int, list[str]] = defaultdict(list)
    in_scope = _of_kind(memories, lambda kind: dict(kind.scope) == scope) & (memories.columns.conversations != MISSING)
    for number in np.flatnonzero(in_scope).tolist():
        turns_by_conversation[int(memories.columns.conversations[number])].append(memories.id_of[number])
    return list(turns_by_conversation.values())


def is_distilled_from(memory: Memory, turn: Memory) -> bool:
    """True if the turn is among the turns that the memory was distilled from."""
    return memory.origin == "distilled" and any(one.memory_id == turn.memory_id for one in memory.evidence)


def is_affected(memory: Memory, change: Change) -> bool:
    """True if the change still applies to the memory; a redelivered change may have been applied already."""
    if _was_published_after(memory, change):
        return False
    if change.whole == "user":
        return memory.boundary == change.scope.boundary
    if change.ids or change.conversation_id or change.whole:
        return memory.scope == change.scope.model_dump()
    if memory.scope[PROJECT_FIELD] in change.except_projects or change.project not in (
        None,
        memory.scope[PROJECT_FIELD],
    ):
        return False
    return memory.mode in (change.mode, change.to)


def _was_published_after(memory: Memory, change: Change) -> bool:
    """True if a turn, or an item's latest turn, was published after the command and applied before its change."""
    if change.turns_before is None or change.turns_until is None:
        return False
    return change.turns_before <= memory.source < change.turns_until


def _of_kind(memories: MemoryColumns, matches: Callable[[MemoryKind], bool]) -> Mask:
    mask: Mask = memories.columns.live & memories.of_kind(matches).astype(np.bool_)
    return mask


def _ids(memories: MemoryColumns, mask: Mask) -> list[str]:
    return [memories.id_of[number] for number in np.flatnonzero(mask).tolist()]
