"""Which memories a change is about, and what goes with those that are forgotten. Pure.

Enters: the roster of a boundary, a scope, records. Leaves: ids, in the order of the roster.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from agents.rules.index.columns import NOBODY, Mask
from agents.rules.index.memory_columns import Roster
from agents.rules.index.traits import Kind
from schemas.changes import Change
from schemas.memories import Memory
from schemas.scopes import PROJECT


def everything(roster: Roster) -> list[str]:
    """All memories of the boundary."""
    return _ids(roster, roster.columns.live)


def scopes_of(roster: Roster) -> Iterator[tuple[str, dict[str, str]]]:
    """All memories of the boundary, each with its scope."""
    scopes = {number: dict(kind.scope) for kind, number in roster.kinds.items()}
    numbers = np.flatnonzero(roster.columns.live)
    kinds = roster.columns.kinds[numbers].tolist()
    return ((roster.id_of[number], scopes[kind]) for number, kind in zip(numbers.tolist(), kinds, strict=True))


def in_scope(roster: Roster, scope: Mapping[str, str]) -> list[str]:
    """All memories of one scope."""
    return _ids(roster, _of_kind(roster, lambda kind: dict(kind.scope) == scope))


def in_mode(roster: Roster, mode: str | None) -> list[str]:
    """All memories of one mode."""
    return _ids(roster, _of_kind(roster, lambda kind: kind.mode == mode))


def superseded(roster: Roster, scope: Mapping[str, str]) -> list[str]:
    """The memories of one scope that others stand for."""
    return _ids(roster, _of_kind(roster, lambda kind: dict(kind.scope) == scope) & roster.columns.superseded)


def conversations(roster: Roster, scope: Mapping[str, str]) -> list[list[str]]:
    """The turns of one scope, a list for each conversation: the record of one turn tells which one it is."""
    talks: defaultdict[int, list[str]] = defaultdict(list)
    here = _of_kind(roster, lambda kind: dict(kind.scope) == scope) & (roster.columns.talks != NOBODY)
    for number in np.flatnonzero(here).tolist():
        talks[int(roster.columns.talks[number])].append(roster.id_of[number])
    return list(talks.values())


def rests_on(memory: Memory, turn: Memory) -> bool:
    """Whether a memory was distilled from a turn, among others."""
    return memory.origin == "distilled" and any(one.memory_id == turn.memory_id for one in memory.evidence)


def is_concerned(memory: Memory, change: Change) -> bool:
    """Whether a change is still to be made: it may come again, and others may have been there before."""
    if change.whole == "user":
        return memory.boundary == change.scope.boundary
    if change.memory_id or change.conversation_id or change.whole:
        return memory.scope == change.scope.model_dump()
    if memory.scope[PROJECT] in change.except_projects or change.project not in (None, memory.scope[PROJECT]):
        return False
    return memory.mode in (change.mode, change.to)


def was_said_after(memory: Memory, change: Change) -> bool:
    """Whether a turn was published after the command that forgets, and was applied before that was carried out."""
    if change.turns_before is None or change.turns_until is None:
        return False
    return change.turns_before <= memory.source < change.turns_until


def _of_kind(roster: Roster, admits: Callable[[Kind], bool]) -> Mask:
    mask: Mask = roster.columns.live & roster.of_kind(admits).astype(np.bool_)
    return mask


def _ids(roster: Roster, mask: Mask) -> list[str]:
    return [roster.id_of[number] for number in np.flatnonzero(mask).tolist()]
