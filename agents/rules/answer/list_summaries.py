"""Conversations and projects of the memories that a list selects. Pure, from columns alone."""

import json
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from modestream_client.listed import ListedConversation, ListedProject

from agents.rules.index.columns import MISSING, IntArray
from agents.rules.index.memory_columns import MemoryColumns, ScopeItems
from schemas.moments import iso, moment_of

_Value = TypeVar("_Value", bound=Hashable)


class Selected(NamedTuple):
    """The numbers of some memories in the columns of their index, and their times in ms, both of shape (memories,)."""

    columns: MemoryColumns
    numbers: IntArray
    times_ms: IntArray


class _Rows(NamedTuple):
    """One row for each memory: its group, time, mode, conversation and speaker; the last two may be `MISSING`."""

    groups: IntArray
    times_ms: IntArray
    modes: IntArray
    conversations: IntArray
    speakers: IntArray

    def at(self, where: IntArray | slice) -> "_Rows":
        return _Rows(*(column[where] for column in self))


class ListedGroups:
    """Conversations or projects, by place. The key of a group orders those of the same time."""

    def __init__(self, turns: MemoryColumns, parts: Sequence[Selected], *, by_conversation: bool) -> None:
        """`turns` are the columns of the boundary's searchable turns; only turns have conversations."""
        self._by_conversation = by_conversation
        self._turns = turns
        speakers = dict(turns.speakers)
        names = {name: number for number, name in enumerate(turns.conversation_names())}
        scopes: dict[ScopeItems, int] = {}
        modes: dict[str, int] = {}
        joined = _Rows(
            *map(
                np.concatenate, zip(*(self._rows_of(one, scopes, modes, names, speakers) for one in parts), strict=True)
            )
        )
        self._names, self._speakers = list(names), list(speakers)
        self._scopes, self._modes = list(scopes), list(modes)
        joined = joined.at(np.flatnonzero(joined.groups != MISSING))
        self._rows = joined.at(np.lexsort((joined.times_ms, joined.groups)))
        self._starts = np.flatnonzero(np.diff(self._rows.groups, prepend=MISSING))
        self._ends = np.append(self._starts[1:], len(self._rows.groups))[: len(self._starts)]
        self.last_ms: IntArray = self._rows.times_ms[self._ends - 1]
        """Times of the last memories, shape (groups,)."""

    def _rows_of(
        self,
        selected: Selected,
        scopes: dict[ScopeItems, int],
        modes: dict[str, int],
        names: dict[tuple[ScopeItems, str], int],
        speakers: dict[str, int],
    ) -> _Rows:
        of, numbers = selected.columns.columns, selected.numbers
        kinds, conversations, speaking = of.kinds[numbers], of.conversations[numbers], of.speakers[numbers]
        if selected.columns is not self._turns:
            conversations = _renumbered(conversations, selected.columns.conversation_names(), names)
            speaking = _renumbered(speaking, selected.columns.speakers, speakers)
        scope_of = [scopes.setdefault(kind.scope, len(scopes)) for kind in selected.columns.kinds]
        mode_of = [modes.setdefault(kind.mode, len(modes)) for kind in selected.columns.kinds]
        groups = conversations if self._by_conversation else np.array(scope_of, np.int64)[kinds]
        return _Rows(groups, selected.times_ms, np.array(mode_of, np.int64)[kinds], conversations, speaking)

    def key_of(self, place: int) -> str:
        """Return the key of the group at a place."""
        group = int(self._rows.groups[self._starts[place]])
        return json.dumps(self._names[group] if self._by_conversation else self._scopes[group], ensure_ascii=False)

    def build(self, place: int) -> ListedConversation | ListedProject:
        """Return the group at a place."""
        rows = self._rows.at(slice(self._starts[place], self._ends[place]))
        group = int(rows.groups[0])
        first, last = (iso(moment_of(int(time))) for time in (rows.times_ms[0], rows.times_ms[-1]))
        modes = dict(sorted(_counts(rows.modes, self._modes)))
        if not self._by_conversation:
            conversations, scope = int((np.unique(rows.conversations) != MISSING).sum()), dict(self._scopes[group])
            return ListedProject(
                scope=scope, memories=len(rows.groups), conversations=conversations, first=first, last=last, modes=modes
            )
        items, name = self._names[group]
        speakers = sorted(speaker for speaker, _ in _counts(rows.speakers, self._speakers))
        return ListedConversation(
            conversation_id=name,
            scope=dict(items),
            turns=len(rows.groups),
            first=first,
            last=last,
            speakers=speakers,
            modes=modes,
        )


def _renumbered(indexes: IntArray, here: Iterable[_Value], numbers: dict[_Value, int]) -> IntArray:
    """Return indexes into the values `here` as those of `numbers`, which gets the new values; `MISSING` stays."""
    # The last one is found by `MISSING`, which is -1.
    of = np.array([*(numbers.setdefault(value, len(numbers)) for value in here), MISSING], np.int64)
    return of[indexes]


def _counts(indexes: IntArray, names: Sequence[str]) -> list[tuple[str, int]]:
    """Count the rows by name; those that are `MISSING` do not count."""
    found, counts = np.unique(indexes, return_counts=True)
    return [(names[one], count) for one, count in zip(found.tolist(), counts.tolist(), strict=True) if one != MISSING]
