"""`Learned` events with items."""

from typing import Any

from modestream_client.vocabulary import ItemKind

from schemas.internal.events import Learned
from schemas.state.memories import Memory
from schemas.state.understanding import IntentionUpdate
from tests.builders.items import item_of
from tests.builders.memories import made


def learned(text: str, number: int = 0, kind: ItemKind | None = None, **fields: Any) -> Learned:
    """Return the event of a turn whose whole text is an item of this kind; without a kind it has no item."""
    turn = made(text, number, **fields)
    return learned_of(turn, *([item_of(turn, text=text, kind=kind)] if kind else []))


def learned_of(turn: Memory, *items: Memory, **update: list[str]) -> Learned:
    """Return the event of a turn with items, and with a language model's intention update if any list is given."""
    intention_update = IntentionUpdate.model_validate(update) if update else None
    return Learned(memory_id=turn.memory_id, scope=turn.scope, memory=turn, items=items, update=intention_update)


def forgotten(event: Learned) -> Learned:
    return Learned(memory_id=event.memory_id, scope=event.scope)
