"""A request as a search: in which modes, of which memories, for what. Pure."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from agents.rules.answers import where_of
from agents.rules.lanes import Lane, asked_modes, current_mode, lanes_of
from agents.rules.questions import Question, understood
from agents.rules.roster import Roster
from schemas.modes import Declared
from schemas.retrieval import RetrieveRequest
from schemas.scopes import PROJECT
from schemas.vectors import Where


@dataclass(frozen=True, slots=True)
class Search:
    """One request on its way. `where` covers all lanes, of which there is at least one."""

    request: RetrieveRequest
    partition: int
    modes: list[str]
    where: Where
    lanes: list[Lane]
    question: Question


def search_of(
    request: RetrieveRequest, partition: int, declared: Declared, roster: Roster, mode_of: Callable[[str], str | None]
) -> Search:
    """Understand a request among the memories of its boundary; `mode_of` tells the mode of a memory by its id.

    Raises Rejected for a mode that is not declared, and for none.
    """
    where, projects = where_of(request), request.scope.fields().get(PROJECT)
    if request.mode is None:
        names = [current_mode(_spoken(request, roster, mode_of), declared, projects)]
    else:
        names = asked_modes(request.mode, declared, projects)
    where = replace(where, modes=tuple(names))
    lanes = lanes_of(names, declared, where, roster.kinds)
    return Search(request, partition, names, where, lanes, understood(request.query, roster.speakers))


def _spoken(request: RetrieveRequest, roster: Roster, mode_of: Callable[[str], str | None]) -> str | None:
    """The mode of the conversation's latest turn, where the request names a conversation."""
    if request.conversation_id is None:
        return None
    where = Where(boundary=request.scope.boundary, scope=request.scope.fields())
    latest = roster.latest(where, request.conversation_id, 1)
    return mode_of(latest[0]) if latest else None
