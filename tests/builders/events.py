"""What was found in turns, for tests: the event with its items, made from little."""

from typing import Any

from schemas.internal.events import Learned
from schemas.state.aims import IntentionUpdate
from schemas.state.memories import ItemKind, Memory
from tests.builders.items import item_of
from tests.builders.memories import made


def learned(text: str, number: int = 0, kind: ItemKind | None = None, **fields: Any) -> Learned:
    """A turn, which is an item of this kind as a whole; without a kind nothing was found in it."""
    turn = made(text, number, **fields)
    return learned_of(turn, *([item_of(turn, text=text, kind=kind)] if kind else []))


def learned_of(turn: Memory, *items: Memory, **update: list[str]) -> Learned:
    """A turn with its items, and with what a language model said where any list is given."""
    said = IntentionUpdate.model_validate(update) if update else None
    return Learned(memory_id=turn.memory_id, scope=turn.scope, memory=turn, items=items, update=said)


def forgotten(event: Learned) -> Learned:
    """The same turn, forgotten."""
    return Learned(memory_id=event.memory_id, scope=event.scope)
