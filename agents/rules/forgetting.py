"""Which memories go when some are forgotten: what is selected, and what was derived from it. Pure.

Enters: the roster of a boundary, a scope, records. Leaves: ids, in the order of the roster.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping

import numpy as np

from agents.rules.columns import NOBODY, Mask
from agents.rules.roster import Roster
from agents.rules.traits import Kind, ScopeItems
from schemas.changes import Change
from schemas.memories import Memory

SAID = "episodic"
"""The type of what somebody said; memories of all other types were derived from that."""

Said = tuple[ScopeItems, str]
"""A scope and a turn id in it: what evidence names."""


def everything(roster: Roster) -> list[str]:
    """All memories of the boundary."""
    return _ids(roster, roster.columns.live)


def in_scope(roster: Roster, scope: Mapping[str, str]) -> list[str]:
    """All memories of one scope."""
    return _ids(roster, _of_kind(roster, lambda kind: dict(kind.scope) == scope))


def in_mode(roster: Roster, mode: str | None) -> list[str]:
    """All memories of one mode."""
    return _ids(roster, _of_kind(roster, lambda kind: kind.mode == mode))


def derived(roster: Roster, scopes: Collection[ScopeItems]) -> list[str]:
    """The memories of these scopes that nobody said."""
    return _ids(roster, _of_kind(roster, lambda kind: kind.scope in scopes and kind.type != SAID))


def superseded(roster: Roster, scopes: Collection[ScopeItems]) -> list[str]:
    """The memories of these scopes that others stand for."""
    return _ids(roster, _of_kind(roster, lambda kind: kind.scope in scopes) & roster.columns.superseded)


def conversations(roster: Roster, scope: Mapping[str, str]) -> list[list[str]]:
    """The turns of one scope, a list for each conversation: the record of one turn tells which one it is."""
    talks: defaultdict[int, list[str]] = defaultdict(list)
    here = _of_kind(roster, lambda kind: dict(kind.scope) == scope) & (roster.columns.talks != NOBODY)
    for number in np.flatnonzero(here).tolist():
        talks[int(roster.columns.talks[number])].append(roster.id_of[number])
    return list(talks.values())


def said(memory: Memory) -> Said | None:
    """What evidence calls this memory; None for one that nobody said."""
    if memory.type != SAID or memory.turn_id is None:
        return None
    return _turn(memory, memory.turn_id)


def rests_on(memory: Memory, gone: Collection[Said]) -> bool:
    """Whether a memory was derived from one of these turns."""
    return memory.type != SAID and any(_turn(memory, evidence.turn_id) in gone for evidence in memory.evidence)


def was_said_after(memory: Memory, change: Change) -> bool:
    """Whether a turn was published after the command that forgets, and was applied before that was carried out."""
    if change.turns_before is None or change.turns_until is None:
        return False
    return change.turns_before <= memory.source < change.turns_until


def _turn(memory: Memory, turn_id: str) -> Said:
    return tuple(sorted(memory.scope.items())), turn_id


def _of_kind(roster: Roster, admits: Callable[[Kind], bool]) -> Mask:
    mask: Mask = roster.columns.live & roster.of_kind(admits).astype(np.bool_)
    return mask


def _ids(roster: Roster, mask: Mask) -> list[str]:
    return [roster.id_of[number] for number in np.flatnonzero(mask).tolist()]
