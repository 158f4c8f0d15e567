"""Plan the searches of a retrieve request: index, modes, filter and parsed question. Pure.

A boundary has two indexes: turns, together with the memories distilled from them, and extracted items. Items appear
inside their turns, and are hits of their own only if the requested types leave turns out. The type `working` selects
the last turns of the request's conversation, as for an assembled context. Most requests need one search.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.window import last_turns
from agents.rules.query.mode_searches import ModeSearch, current_mode, mode_searches_of, requested_modes
from agents.rules.query.questions import Question, parse_question
from schemas.messages.retrieval import RetrieveRequest
from schemas.models.vectors import MemoryFilter
from schemas.moments import milliseconds_of
from schemas.scopes import PROJECT_FIELD
from schemas.state.memories import MemoryType, item_index_name
from schemas.state.modes import ModeDeclarations


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """One search in the index that `where.boundary` names; it has at least one mode search.

    `where` covers all mode searches. `within` restricts the result to these memories, None for no restriction;
    `shown_as` replaces the type of the hits.
    """

    request: RetrieveRequest
    modes: list[str]
    where: MemoryFilter
    mode_searches: list[ModeSearch]
    question: Question
    within: frozenset[str] | None = None
    shown_as: MemoryType | None = None

    def restricted_to(self, memory_ids: frozenset[str]) -> "SearchPlan":
        """Return the plan restricted to these memories."""
        return replace(self, within=memory_ids if self.within is None else self.within & memory_ids)


def plan_searches(
    request: RetrieveRequest,
    declared: ModeDeclarations,
    columns_of: Callable[[str], MemoryColumns],
    mode_of: Callable[[str], str | None],
) -> list[SearchPlan]:
    """Return at least one search for a request.

    `columns_of` reads the memories of an index by its name, `mode_of` the mode of a memory by its id. Raises Rejected
    for an undeclared mode and for an empty list of modes.
    """
    turns, projects = columns_of(request.scope.boundary), request.scope.fields().get(PROJECT_FIELD)
    if request.mode is None:
        names = [current_mode(_conversation_mode(request, turns, mode_of), declared, projects)]
    else:
        names = requested_modes(request.mode, declared, projects)
    question = parse_question(request.query, turns.speakers)

    def search(selection: _IndexSelection) -> SearchPlan:
        where = replace(where_of(request), boundary=selection.index_name, types=selection.types, modes=tuple(names))
        mode_searches = mode_searches_of(names, declared, where, columns_of(selection.index_name).kinds)
        return SearchPlan(request, names, where, mode_searches, question, selection.within, selection.shown_as)

    return [search(selection) for selection in _select_indexes(request, turns)]


def search_mask(search: SearchPlan, memory_columns: MemoryColumns) -> Mask:
    """Return which memories of the index a search may find."""
    mask = memory_columns.admitted(search.where, include_superseded=search.request.include_superseded)
    if search.within is not None:
        only: Mask = np.zeros(len(mask), np.bool_)
        only[[memory_columns.number_of[one] for one in search.within if one in memory_columns.number_of]] = True
        mask &= only
    return mask


def _conversation_mode(
    request: RetrieveRequest, memory_columns: MemoryColumns, mode_of: Callable[[str], str | None]
) -> str | None:
    """Return the mode of the conversation's latest turn, None without a conversation or a turn."""
    if request.conversation_id is None:
        return None
    where = MemoryFilter(boundary=request.scope.boundary, scope=request.scope.fields())
    latest = memory_columns.latest(where, request.conversation_id, 1)
    return mode_of(latest[0]) if latest else None


@dataclass(frozen=True, slots=True)
class _IndexSelection:
    """One index to search, for these types (None: all); `within` and `shown_as` as in `SearchPlan`."""

    index_name: str
    types: tuple[str, ...] | None = None
    within: frozenset[str] | None = None
    shown_as: MemoryType | None = None


def _select_indexes(request: RetrieveRequest, turns: MemoryColumns) -> list[_IndexSelection]:
    """Return the indexes to search, at least one; `turns` are the columns of the index of turns."""
    boundary, types = request.scope.boundary, request.types
    if types is None or "episodic" in types:
        return [_IndexSelection(boundary, None if types is None else tuple(types))]
    others = tuple(one for one in types if one != "working")
    found = [_IndexSelection(item_index_name(boundary), others)] if others else []
    if any(kind.type in others for kind in turns.kinds):
        found.append(_IndexSelection(boundary, others))
    if "working" in types:
        found.append(_IndexSelection(boundary, ("episodic",), _window(request, turns), "working"))
    return found or [_IndexSelection(boundary, ())]


def _window(request: RetrieveRequest, turns: MemoryColumns) -> frozenset[str]:
    where = MemoryFilter(boundary=request.scope.boundary, scope=request.scope.fields())
    return frozenset(last_turns(turns, where, request.conversation_id, 0))


def where_of(request: RetrieveRequest) -> MemoryFilter:
    """Return the filter for the selector, types and times of a request, over all modes."""
    return MemoryFilter(
        boundary=request.scope.boundary,
        scope=request.scope.fields(),
        types=None if request.types is None else tuple(request.types),
        since_ms=_milliseconds(request.since),
        until_ms=_milliseconds(request.until),
    )


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else milliseconds_of(moment)
