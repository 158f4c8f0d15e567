"""Where the memories lie that a request asks for by their types: among the turns, among the items, or both. Pure.

Turns are episodic; what was distilled from several lies beside them, with types of its own. Items lie on a shelf of
their own: they are shown inside their turns, and are hits themselves only where the types leave turns out. `working`
are the last turns of the request's conversation, the same that a context may be made of.
"""

from dataclasses import dataclass

from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.window import last_turns
from schemas.memories import MemoryType, item_index_name
from schemas.retrieval import RetrieveRequest
from schemas.vectors import MemoryFilter


@dataclass(frozen=True, slots=True)
class IndexSelection:
    """One shelf with what is looked for there.

    `types` None are all; `within` names the only memories that may be found, None for any; `shown_as` is the type that
    the hits show in place of their own.
    """

    index_name: str
    types: tuple[str, ...] | None = None
    within: frozenset[str] | None = None
    shown_as: MemoryType | None = None


def select_indexes(request: RetrieveRequest, turns: MemoryColumns) -> list[IndexSelection]:
    """Where to look; at least one part. `turns` are the turns of the boundary, with what was distilled from them."""
    boundary, types = request.scope.boundary, request.types
    if types is None or "episodic" in types:
        return [IndexSelection(boundary, None if types is None else tuple(types))]
    others = tuple(one for one in types if one != "working")
    found = [IndexSelection(item_index_name(boundary), others)] if others else []
    if any(kind.type in others for kind in turns.kinds):
        found.append(IndexSelection(boundary, others))
    if "working" in types:
        found.append(IndexSelection(boundary, ("episodic",), _window(request, turns), "working"))
    return found or [IndexSelection(boundary, ())]


def _window(request: RetrieveRequest, turns: MemoryColumns) -> frozenset[str]:
    where = MemoryFilter(boundary=request.scope.boundary, scope=request.scope.fields())
    return frozenset(last_turns(turns, where, request.conversation_id, 0))
