"""What a list shows: which indexes have it, which rows of their columns, and which records. Pure.

Columns decide first; a record has the last word, as it may have changed since, and has what columns lack.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from modestream_client.vocabulary import MemoryType

from agents.rules.cues.labels import SentenceLabel
from agents.rules.index.columns import MISSING, IntArray, Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.query.plans import IndexSelection, declared_names, select_indexes, where_of
from schemas.messages.lists import ListRequest
from schemas.models.vectors import MemoryFilter
from schemas.scopes import ANY_VALUE, PROJECT_FIELD
from schemas.state.memories import Memory, turn_index_names, unsearchable_index_name
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
        """True if the part has this memory."""
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
    """The filters of one request. `needle` is `contains` without letter case, None if there is none."""

    request: ListRequest
    parts: Sequence[ListPart]
    needle: str | None

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
            known = [columns.number_of[one] for one in part.within if one in columns.number_of]
            mask &= _mask_of(np.array(known, np.int64), len(mask))
        return np.flatnonzero(mask)

    def part_of(self, memory: Memory) -> ListPart | None:
        """Return the part that shows a record; None if the list does not show it."""
        asked = self.request
        is_shown = (
            (asked.include_superseded or memory.superseded_by is None)
            and asked.conversation_id in (None, memory.conversation_id)
            and asked.role in (None, memory.role)
            and asked.embedding_status in (None, memory.embedding.status)
            and (self.needle is None or self.needle in memory.text.casefold())
        )
        return next((part for part in self.parts if part.admits(memory)), None) if is_shown else None


def plan_list(request: ListRequest, declared: ModeDeclarations, turns: MemoryColumns) -> ListFilter:
    """Return the filters of a request; `turns` are the columns of the boundary's turns.

    As in an answer, extracted items are listed where the types leave turns out; unlike there, what is not searchable is
    listed, too. Raises Rejected for an undeclared mode and for an empty list of modes.
    """
    where = replace(where_of(request), modes=_modes(request, declared))
    searched = select_indexes(request, turns)
    parts = [
        ListPart(replace(where, boundary=one.index_name, types=one.types), one.within, one.shown_as)
        for one in (*searched, *_unsearchable_of(searched, request))
    ]
    return ListFilter(request, parts, request.contains.casefold() if request.contains else None)


def _unsearchable_of(searched: Sequence[IndexSelection], request: ListRequest) -> Iterator[IndexSelection]:
    """Yield the selections of what is not searchable, beside those that are searched; no window has such a turn."""
    types = next((one.types for one in searched if one.within is None), ())
    boundary = request.scope.boundary
    names = dict.fromkeys((boundary, *(one.index_name for one in searched if one.within is None)))
    return (IndexSelection(unsearchable_index_name(name), types) for name in names if types != ())


def _modes(request: ListRequest, declared: ModeDeclarations) -> tuple[str, ...] | None:
    if request.mode is None:
        return None
    names = declared_names(request.mode, declared, request.scope.fields().get(PROJECT_FIELD))
    return None if ANY_VALUE in names else tuple(names)


def _mask_of(numbers: IntArray, size: int) -> Mask:
    mask: Mask = np.zeros(size, np.bool_)
    mask[numbers] = True
    return mask
