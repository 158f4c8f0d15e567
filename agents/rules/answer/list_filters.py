"""Filters and summaries of lists: indexes, rows of columns, records, conversations and projects. Pure.

Columns decide first; a record has the last word, as it may have changed since, and has what columns lack.
"""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
from modestream_client.hits import ListedConversation, ListedProject, ListFacets
from modestream_client.vocabulary import MemoryType

from agents.rules.cues.labels import SentenceLabel
from agents.rules.index.columns import MISSING, IntArray, Mask
from agents.rules.index.memory_columns import MemoryColumns, ScopeItems
from agents.rules.query.plans import IndexSelection, declared_names, select_indexes, where_of
from agents.rules.text.tokenizer import fragments
from schemas.messages.retrieval import ListRequest
from schemas.models.vectors import MemoryFilter
from schemas.moments import iso, moment_of
from schemas.scopes import ANY_VALUE, PROJECT_FIELD
from schemas.state.memories import Memory, MemoryExcerpt, item_index_name, turn_index_names, unsearchable_index_name
from schemas.state.modes import ModeDeclarations

StatusNumbers = Callable[[str], IntArray]
"""Returns the numbers of an index's memories with the requested embedding status."""


@dataclass(frozen=True, slots=True)
class ListPart:
    """The memories of one index; `within` restricts them to these ids, `shown_as` replaces their type."""

    where: MemoryFilter
    within: frozenset[str] | None = None
    shown_as: MemoryType | None = None

    def admits(self, memory: Memory) -> bool:
        where = self.where
        return (
            memory.index_name == where.boundary
            and where.admits(memory.mode, memory.type, memory.scope)
            and (where.since_ms is None or memory.occurred_ms >= where.since_ms)
            and (where.until_ms is None or memory.occurred_ms < where.until_ms)
            and (self.within is None or memory.memory_id in self.within)
        )


@dataclass(frozen=True, slots=True)
class ListFilter:
    """The filters of one request. `needle` is `contains` without letter case, None without it.

    `fragments` are runs of letters of it, by which the lexical index excludes most memories; possibly none.
    """

    request: ListRequest
    parts: Sequence[ListPart]
    needle: str | None
    fragments: Sequence[str] = ()

    def numbers(self, part: ListPart, columns: MemoryColumns, statuses: StatusNumbers, began: int) -> IntArray:
        """Return the numbers that the columns admit, ascending. Turns with an offset above `began` are left out."""
        mask = columns.admitted(part.where, include_superseded=self.request.include_superseded)
        mask &= (columns.columns.conversations == MISSING) | (columns.columns.source <= began)
        if self.request.role is not None:
            mask &= (columns.columns.labels & SentenceLabel[self.request.role.upper()].value) != 0
        is_of_turns = part.where.boundary in turn_index_names(self.request.scope.boundary)
        if self.request.conversation_id is not None and is_of_turns:
            mask &= columns.in_conversation(self.request.conversation_id)
        if self.request.embedding_status is not None:
            mask &= _mask_of(statuses(part.where.boundary), len(mask))
        if part.within is not None:
            numbers = [columns.number_of[memory_id] for memory_id in part.within if memory_id in columns.number_of]
            mask &= _mask_of(np.array(numbers, np.int64), len(mask))
        return np.flatnonzero(mask)

    def has_text(self, memory: MemoryExcerpt) -> bool:
        """True if a memory that the columns admit has the text, and the conversation that columns of items lack."""
        is_in_conversation = self.request.conversation_id in (None, memory.conversation_id)
        return is_in_conversation and (self.needle is None or self.needle in memory.text.casefold())

    def part_of(self, memory: Memory) -> ListPart | None:
        """Return the part that shows a record; None if the list does not show it."""
        asked = self.request
        is_shown = (
            (asked.include_superseded or not memory.is_superseded(asked.as_of))
            and asked.conversation_id in (None, memory.conversation_id)
            and asked.role in (None, memory.role)
            and asked.embedding_status in (None, memory.embedding.status)
            and (self.needle is None or self.needle in memory.text.casefold())
        )
        return next((part for part in self.parts if part.admits(memory)), None) if is_shown else None


def plan_list(request: ListRequest, declared: ModeDeclarations, turns: MemoryColumns) -> ListFilter:
    """Return the filters of a request; `turns` are the columns of the boundary's turns.

    As in an answer, extracted items are listed where the types leave turns out; unlike there, documents stand with
    turns where the types name both, and unsearchable memories are listed, too. Raises Rejected for an undeclared mode
    and for an empty list of modes.
    """
    where = replace(where_of(request), modes=_modes(request, declared))
    searched = select_indexes(request, turns)
    if request.types is not None and {"episodic", "document"} <= {*request.types}:
        searched.append(IndexSelection(item_index_name(request.scope.boundary), ("document",)))
    # Unsearchable memories, in addition to searchable ones; no window has such a turn.
    types = next((index.types for index in searched if index.within is None), ())
    names = (request.scope.boundary, *(index.index_name for index in searched if index.within is None))
    unsearchable = (
        IndexSelection(unsearchable_index_name(name), types) for name in dict.fromkeys(names) if types != ()
    )
    parts = [
        ListPart(replace(where, boundary=index.index_name, types=index.types), index.within, index.shown_as)
        for index in (*searched, *unsearchable)
    ]
    if not request.contains:
        return ListFilter(request, parts, None)
    return ListFilter(request, parts, request.contains.casefold(), fragments(request.contains))


MAX_FACET_VALUES = 20


def count_facets(parts: Sequence["Selected"], types: Sequence[MemoryType | None]) -> ListFacets:
    """Count memories by what lists filter by; `types` are those that parts are shown as, None for their own."""
    counted = {name: Counter[str]() for name in ListFacets.model_fields}
    for (columns, numbers, _), shown_as in zip(parts, types, strict=True):
        arrays, kinds = columns.columns, list(columns.kinds)
        values: dict[str, tuple[IntArray, Sequence[str]]] = {
            "mode": (arrays.kinds, [kind.mode for kind in kinds]),
            "type": (arrays.kinds, [shown_as or kind.type for kind in kinds]),
            "speaker": (arrays.speakers, list(columns.speakers)),
            "conversation": (arrays.conversations, [name for _, name in columns.conversation_names()]),
        }
        for facet, (indexes, names) in values.items():
            for name, number in _counts(indexes[numbers], names):
                counted[facet][name] += number
    return ListFacets(**{facet: dict(each.most_common(MAX_FACET_VALUES)) for facet, each in counted.items()})


def _modes(request: ListRequest, declared: ModeDeclarations) -> tuple[str, ...] | None:
    if request.mode is None:
        return None
    names = declared_names(request.mode, declared, request.scope.fields().get(PROJECT_FIELD))
    return None if ANY_VALUE in names else tuple(names)


def _mask_of(numbers: IntArray, size: int) -> Mask:
    mask: Mask = np.zeros(size, np.bool_)
    mask[numbers] = True
    return mask


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
    """Conversations or projects, by position. The key of a group orders those of the same time."""

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
                np.concatenate,
                zip(*(self._rows_of(part, scopes, modes, names, speakers) for part in parts), strict=True),
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
        group = int(self._rows.groups[self._starts[place]])
        # It is part of cursors: its spelling must not change.
        return json.dumps(self._names[group] if self._by_conversation else self._scopes[group], ensure_ascii=False)

    def first_turns(self, place: int, limit: int) -> list[str]:
        """Return the ids of the first turns of a conversation, at most `limit`, whichever of them match."""
        return self._turns.beginning(*self._names[int(self._rows.groups[self._starts[place]])], limit)

    def build(self, place: int) -> ListedConversation | ListedProject:
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
    """Map `numbers` to indexes into the values `here`, adding new values; `MISSING` stays."""
    # The last one is found by `MISSING`, which is -1.
    of = np.array([*(numbers.setdefault(value, len(numbers)) for value in here), MISSING], np.int64)
    return of[indexes]


def _counts(indexes: IntArray, names: Sequence[str]) -> list[tuple[str, int]]:
    """Count the rows by name; those that are `MISSING` do not count."""
    distinct, counts = np.unique(indexes, return_counts=True)
    return [
        (names[index], count)
        for index, count in zip(distinct.tolist(), counts.tolist(), strict=True)
        if index != MISSING
    ]
