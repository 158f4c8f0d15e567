"""Which memories a change is about, and what goes with those that are forgotten. Pure.

Enters: the roster of a boundary, a scope, records. Leaves: ids, in the order of the roster.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from agents.rules.index.columns import MISSING, Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.traits import MemoryKind
from schemas.changes import Change
from schemas.memories import Memory
from schemas.scopes import PROJECT_FIELD


def list_ids(roster: MemoryColumns) -> list[str]:
    """All memories of the boundary."""
    return _ids(roster, roster.columns.live)


def list_ids_with_scope(roster: MemoryColumns) -> Iterator[tuple[str, dict[str, str]]]:
    """All memories of the boundary, each with its scope."""
    scopes = {number: dict(kind.scope) for kind, number in roster.kinds.items()}
    numbers = np.flatnonzero(roster.columns.live)
    kinds = roster.columns.kinds[numbers].tolist()
    return ((roster.id_of[number], scopes[kind]) for number, kind in zip(numbers.tolist(), kinds, strict=True))


def list_ids_in_scope(roster: MemoryColumns, scope: Mapping[str, str]) -> list[str]:
    """All memories of one scope."""
    return _ids(roster, _of_kind(roster, lambda kind: dict(kind.scope) == scope))


def list_ids_in_mode(roster: MemoryColumns, mode: str | None) -> list[str]:
    """All memories of one mode."""
    return _ids(roster, _of_kind(roster, lambda kind: kind.mode == mode))


def list_superseded_ids(roster: MemoryColumns, scope: Mapping[str, str]) -> list[str]:
    """The memories of one scope that others stand for."""
    return _ids(roster, _of_kind(roster, lambda kind: dict(kind.scope) == scope) & roster.columns.superseded)


def list_conversations(roster: MemoryColumns, scope: Mapping[str, str]) -> list[list[str]]:
    """The turns of one scope, a list for each conversation: the record of one turn tells which one it is."""
    talks: defaultdict[int, list[str]] = defaultdict(list)
    here = _of_kind(roster, lambda kind: dict(kind.scope) == scope) & (roster.columns.conversations != MISSING)
    for number in np.flatnonzero(here).tolist():
        talks[int(roster.columns.conversations[number])].append(roster.id_of[number])
    return list(talks.values())


def is_distilled_from(memory: Memory, turn: Memory) -> bool:
    """Whether a memory was distilled from a turn, among others."""
    return memory.origin == "distilled" and any(one.memory_id == turn.memory_id for one in memory.evidence)


def is_affected(memory: Memory, change: Change) -> bool:
    """Whether a change is still to be made: it may come again, and others may have been there before."""
    if change.whole == "user":
        return memory.boundary == change.scope.boundary
    if change.memory_id or change.conversation_id or change.whole:
        return memory.scope == change.scope.model_dump()
    if memory.scope[PROJECT_FIELD] in change.except_projects or change.project not in (
        None,
        memory.scope[PROJECT_FIELD],
    ):
        return False
    return memory.mode in (change.mode, change.to)


def was_published_after(memory: Memory, change: Change) -> bool:
    """Whether a turn was published after the command that forgets, and was applied before that was carried out."""
    if change.turns_before is None or change.turns_until is None:
        return False
    return change.turns_before <= memory.source < change.turns_until


def _of_kind(roster: MemoryColumns, admits: Callable[[MemoryKind], bool]) -> Mask:
    mask: Mask = roster.columns.live & roster.of_kind(admits).astype(np.bool_)
    return mask


def _ids(roster: MemoryColumns, mask: Mask) -> list[str]:
    return [roster.id_of[number] for number in np.flatnonzero(mask).tolist()]
