"""A request as searches: in which modes, of which memories, for what. Pure.

One search looks at one shelf of a boundary; most requests need only one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from agents.rules.index.columns import Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.query.filters import where_of
from agents.rules.query.index_selection import IndexSelection, select_indexes
from agents.rules.query.questions import Question, parse_question
from agents.rules.query.vector_lanes import ModeSearch, current_mode, mode_searches_of, requested_modes
from schemas.memories import MemoryType
from schemas.modes import ModeDeclarations
from schemas.retrieval import RetrieveRequest
from schemas.scopes import PROJECT_FIELD
from schemas.vectors import MemoryFilter


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """One request on its way to one shelf, which is the boundary of `where`.

    `where` covers all lanes, of which there is at least one. `within` names the only memories that may be found, None
    for any; `shown_as` is the type that hits show in place of their own.
    """

    request: RetrieveRequest
    partition: int
    modes: list[str]
    where: MemoryFilter
    mode_searches: list[ModeSearch]
    question: Question
    within: frozenset[str] | None = None
    shown_as: MemoryType | None = None

    def restricted_to(self, memory_ids: frozenset[str]) -> "SearchPlan":
        """The same among these memories alone."""
        return replace(self, within=memory_ids if self.within is None else self.within & memory_ids)


def plan_searches(
    request: RetrieveRequest,
    partition: int,
    declared: ModeDeclarations,
    roster_of: Callable[[str], MemoryColumns],
    mode_of: Callable[[str], str | None],
) -> list[SearchPlan]:
    """Understand a request among the memories of its boundary; at least one search.

    `roster_of` gives the memories of a shelf, `mode_of` tells the mode of a memory by its id. Raises Rejected for a
    mode that is not declared, and for none.
    """
    turns, projects = roster_of(request.scope.boundary), request.scope.fields().get(PROJECT_FIELD)
    if request.mode is None:
        names = [current_mode(_spoken(request, turns, mode_of), declared, projects)]
    else:
        names = requested_modes(request.mode, declared, projects)
    question = parse_question(request.query, turns.speakers)

    def search(part: IndexSelection) -> SearchPlan:
        where = replace(where_of(request), boundary=part.index_name, types=part.types, modes=tuple(names))
        lanes = mode_searches_of(names, declared, where, roster_of(part.index_name).kinds)
        return SearchPlan(request, partition, names, where, lanes, question, part.within, part.shown_as)

    return [search(part) for part in select_indexes(request, turns)]


def search_mask(search: SearchPlan, roster: MemoryColumns) -> Mask:
    """Which memories of its shelf a search may find."""
    mask = roster.admitted(search.where, include_superseded=search.request.include_superseded)
    if search.within is not None:
        only: Mask = np.zeros(len(mask), np.bool_)
        only[[roster.number_of[one] for one in search.within if one in roster.number_of]] = True
        mask &= only
    return mask


def _spoken(request: RetrieveRequest, roster: MemoryColumns, mode_of: Callable[[str], str | None]) -> str | None:
    """The mode of the conversation's latest turn, where the request names a conversation."""
    if request.conversation_id is None:
        return None
    where = MemoryFilter(boundary=request.scope.boundary, scope=request.scope.fields())
    latest = roster.latest(where, request.conversation_id, 1)
    return mode_of(latest[0]) if latest else None
