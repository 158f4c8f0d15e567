"""Items and summaries with evidence in turns."""

import uuid
from collections.abc import Sequence
from typing import Any

from modestream_client.hits import Evidence
from modestream_client.vocabulary import ItemKind

from schemas.state.memories import Item, Memory
from tests.builders.memories import made


def item_of(*turns: Memory, text: str, kind: ItemKind | None = "fact", **fields: Any) -> Memory:
    """Return an item extracted from these turns; an item of one turn has that turn's speaker."""
    last = turns[-1]
    whose = {name: getattr(last, name) for name in ("turn_id", "conversation_id", "role", "speaker")}
    known: dict[str, Any] = {
        "memory_id": _id("item", last, text),
        "origin": "extracted",
        "type": "semantic",
        "mode": last.mode,
        "evidence": spans(turns),
        "item": Item(kind=kind),
        "occurred_at": last.occurred_at,
        **(whose if len(turns) == 1 else dict.fromkeys(whose)),
    }
    return _beside(last, text, known | fields)


def distilled_of(*turns: Memory, text: str, **fields: Any) -> Memory:
    nobody = dict.fromkeys(("turn_id", "conversation_id", "role", "speaker"))
    known: dict[str, Any] = {
        "memory_id": _id("distilled", turns[-1], text),
        "origin": "distilled",
        "type": "semantic",
        "mode": turns[-1].mode,
        "evidence": spans(turns),
        "item": Item(run="0-1"),
        "occurred_at": turns[-1].occurred_at,
        **nobody,
    }
    return _beside(turns[-1], text, known | fields)


def with_items(turn: Memory, *items: Memory) -> Memory:
    return turn.model_copy(update={"items": tuple(item.memory_id for item in items)})


def spans(turns: Sequence[Memory]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(turn_id=turn.turn_id or "", start=0, end=len(turn.text), memory_id=turn.memory_id) for turn in turns
    )


def _id(origin: str, turn: Memory, text: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{origin}/{turn.boundary}/{turn.mode}/{text}"))


def _beside(turn: Memory, text: str, fields: dict[str, Any]) -> Memory:
    return made(text, user=turn.scope["user_id"], project=turn.scope["project_id"], **fields)
