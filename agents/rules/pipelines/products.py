"""Check what an own step returned, before it counts: a wrong product is a failure of the step. Pure.

No product reaches what its step was not given: a hit or a turn that it was not shown, a scope, an identity.
"""

from collections.abc import Callable, Mapping
from typing import Any

from agents.rules.items.extracted_item import ExtractedItem
from schemas.messages.retrieval import MAX_QUERY_LENGTH
from schemas.messages.turns import Turn
from schemas.state.memories import Memory
from schemas.state.understanding import Understanding

MAX_OWN_ITEMS = 1000
"""Items of one turn that an own step may return; the rules find some hundred in the longest text."""

TURN_IDENTITY = ("scope", "conversation_id", "turn_id", "role", "occurred_at", "mode")
"""The fields of a turn that an own step leaves as they are."""


class WrongProduct(ValueError):
    """A step returned what it may not; the message says what."""


Check = Callable[[Mapping[str, Any], Any], Any]
"""Takes the state before and what the step returned; returns what counts. Raises WrongProduct."""


def product_of(returned: object, produces: str, before: Mapping[str, Any]) -> Any:
    """Return what counts of the value that an own step returned. Raises WrongProduct."""
    if not isinstance(returned, Mapping) or set(returned) != {produces}:
        shown = sorted(map(str, returned)) if isinstance(returned, Mapping) else type(returned).__name__
        raise WrongProduct(f"it returned {shown} and not a mapping with exactly {produces!r}")
    return _CHECKS[produces](before, returned[produces])


def _turn(before: Mapping[str, Any], turn: Any) -> Turn:
    known: Turn = before["turn"]
    if not isinstance(turn, Turn):
        raise WrongProduct("`turn` is no Turn")
    changed = [name for name in TURN_IDENTITY if getattr(turn, name) != getattr(known, name)]
    if changed:
        raise WrongProduct(f"it changed {', '.join(changed)} of the turn")
    # Its class is the deployment's own: all limits of a published turn hold.
    return type(known).model_validate(turn.model_dump(), strict=False)


def _items(before: Mapping[str, Any], items: Any) -> list[ExtractedItem]:
    memory: Memory = before["memory"]
    texts = {None: memory.text} | {one.uri: one.text or "" for one in memory.resources}
    found = list(items)
    if len(found) > MAX_OWN_ITEMS:
        raise WrongProduct(f"{len(found)} items, at most {MAX_OWN_ITEMS}")
    for item in found:
        if not isinstance(item, ExtractedItem) or not item.text:
            raise WrongProduct("`items` are ExtractedItem with a text")
        if not 0 <= item.start < item.end <= len(texts.get(item.resource, "")):
            raise WrongProduct(f"the span {item.start} to {item.end} is not within its text")
    return found


def _understanding(_before: Mapping[str, Any], found: Any) -> Understanding | None:
    if found is not None and not isinstance(found, Understanding):
        raise WrongProduct("`understanding` is an Understanding or None")
    return found


def _query(_before: Mapping[str, Any], query: Any) -> str:
    if not isinstance(query, str) or not 1 <= len(query) <= MAX_QUERY_LENGTH:
        raise WrongProduct(f"`query` is a string of 1 to {MAX_QUERY_LENGTH} characters")
    return query


def _some_of(name: str) -> Check:
    """Return the check of a list of memories that may be narrowed and reordered."""

    def check(before: Mapping[str, Any], memories: Any) -> list[Any]:
        found, given = list(memories), {one.memory_id for one in before[name]}
        ids = [getattr(one, "memory_id", None) for one in found]
        if len(set(ids)) < len(ids) or not given.issuperset(ids):
            raise WrongProduct(f"`{name}` are some of those that it was given, each once")
        return found

    return check


_CHECKS: Mapping[str, Check] = {
    "turn": _turn,
    "items": _items,
    "understanding": _understanding,
    "query": _query,
    "hits": _some_of("hits"),
    "turns": _some_of("turns"),
}
