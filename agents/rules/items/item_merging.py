"""What the turns that say something make of an item: a record of what they give it, whatever came first. Pure.

Enters: what was found in a turn; the supports of an item, and the turn that says it last. Leaves: supports, the item's
record.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate
from math import prod

from agents.rules.items.found import ExtractedItem
from agents.rules.memory.identity import derive_item_id, hash_texts
from agents.rules.memory.understanding import current_text_hash
from agents.rules.text.embedding_text import embedding_text
from schemas.memories import Embedding, Evidence, Item, Memory, Support, TextVersion, TurnUnderstanding

MAX_SUPPORTS = 32
"""Supports of one item, the latest: what is said more often is as sure as it gets, and its record stays small."""

MAX_SUPPORTS_CHARS = 8192
"""Characters of all supports of one item, the latest: a page that comes with every turn has some hundred segments, and
each is written anew with all of its supports."""

MAX_COMBINED_CONFIDENCE = 0.99
"""The most that turns can make sure of: all of them may err alike."""

CONFIDENCE_DIGITS = 4
"""Digits of a confidence, so that no order of adding shows."""


def supports_of(turn: Memory, found: Iterable[ExtractedItem]) -> list[Support]:
    """What was found in a turn, as what the turn gives to items."""
    return [
        Support(
            memory_id=turn.memory_id,
            turn_id=turn.turn_id or "",
            text_hash=current_text_hash(turn),
            occurred_at=turn.occurred_at,
            source=turn.source,
            **one._asdict(),
        )
        for one in found
    ]


def support_item_id(turn: Memory, support: Support) -> str:
    """The id of the item that a turn supports so, in the mode in which the turn is."""
    return derive_item_id(turn.scope, turn.mode, support.type, support.text)


def modeless_item_id(turn: Memory, support: Support) -> str:
    """What stands for the item in every mode: the mark that it was forgotten stands there."""
    return derive_item_id(turn.scope, "", support.type, support.text)


def supports_from_turn(item: Memory, turn: Memory) -> list[Support]:
    """What a turn gives to an item by the text that stands."""
    return [
        one for one in _supports(item) if (one.memory_id, one.text_hash) == (turn.memory_id, current_text_hash(turn))
    ]


def restrict_to_turn(item: Memory, turn: Memory) -> Memory:
    """An item as it is told of with a turn: what others give to it would make the event grow with each that says it."""
    evidence = tuple(one for one in item.evidence if one.memory_id == turn.memory_id)
    known = None if item.item is None else item.item.model_copy(update={"supports": ()})
    return item.model_copy(update={"evidence": evidence, "item": known})


def is_supported_by_any(item: Memory, turns: Collection[str]) -> bool:
    """Whether any of these turns gives something to an item."""
    return any(one.memory_id in turns for one in _supports(item))


def replace_supports(item: Memory | None, turns: Collection[str], given: Iterable[Support] = ()) -> tuple[Support, ...]:
    """The supports of an item after these turns give it this and nothing else, the latest last."""
    others = () if item is None else [one for one in _supports(item) if one.memory_id not in turns]
    return _latest(sorted({*others, *given}, key=_order)[-MAX_SUPPORTS:])


def build_item(memory_id: str, supports: Sequence[Support], turn: Memory, before: Memory | None) -> Memory:
    """The record of an item that has these supports. `turn` is the one that supports it last.

    Words, kind, claim and stability are those of the last support. The mode is the one that the item is in: a person
    may have put it into another than its turns. An item of several turns has no turn of its own.
    """
    last = supports[-1]
    alone = len({one.memory_id for one in supports}) == 1
    memory = Memory(
        memory_id=memory_id,
        turn_id=last.turn_id if alone else None,
        conversation_id=turn.conversation_id if alone else None,
        scope=turn.scope,
        boundary=turn.boundary,
        type=last.type,
        mode=before.mode if before else turn.mode,
        mode_source=before.mode_source if before else turn.mode_source,
        role=turn.role if alone else None,
        speaker=turn.speaker if alone else None,
        text=last.text,
        occurred_at=last.occurred_at,
        source=last.source,
        latest=turn.latest,
        latest_at=turn.latest_at,
        importance=turn.importance,
        entities=last.entities,
        evidence=tuple(map(_evidence, supports)),
        decay=before.decay if before else turn.decay,
        versions=(TextVersion(text_hash=hash_texts([last.text]), first_seen=turn.latest_at),),
        content_hash="",
        reading=TurnUnderstanding(text_hash=hash_texts([last.text]), times=last.times),
        origin="extracted",
        item=_item(supports, before),
    )
    content_hash = hash_texts([embedding_text(memory)])
    return memory.model_copy(update={"content_hash": content_hash, **_kept(content_hash, before)})


def combine_confidences(supports: Iterable[Support]) -> float:
    """How surely turns say something that say it independently: noisy-or (Pearl 1988, §4.3.2), a turn counted once."""
    surest: dict[str, float] = {}
    for one in supports:
        surest[one.memory_id] = max(one.confidence, surest.get(one.memory_id, 0.0))
    doubt = prod(1 - confidence for confidence in sorted(surest.values()))
    most = max(MAX_COMBINED_CONFIDENCE, *surest.values())
    return round(min(most, 1 - doubt), CONFIDENCE_DIGITS)


def _item(supports: Sequence[Support], before: Memory | None) -> Item:
    last = supports[-1]
    known = before.item if before is not None and before.item is not None else Item()
    return known.model_copy(
        update={
            "kind": last.kind,
            "confidence": combine_confidences(supports),
            "stability": last.stability,
            "claim": last.claim,
            "valid_from": supports[0].occurred_at,
            "supports": tuple(supports),
        }
    )


def _kept(content_hash: str, before: Memory | None) -> dict[str, object]:
    """What stays as it was: the vector of the same words, and what took the item's place."""
    if before is None:
        return {}
    same = before.content_hash == content_hash
    embedding = before.embedding if same else Embedding(place=before.embedding.place)
    return {
        "embedding": embedding,
        "superseded_by": before.superseded_by,
        "superseded_in": before.superseded_in,
    }


def _latest(supports: Sequence[Support]) -> tuple[Support, ...]:
    """As many of these as there is room for, the last of them in any case."""
    lengths = accumulate(len(one.text) for one in reversed(supports))
    room = sum(length <= MAX_SUPPORTS_CHARS for length in lengths)
    return tuple(supports[-max(room, 1) :])


def _evidence(support: Support) -> Evidence:
    return Evidence(
        turn_id=support.turn_id,
        start=support.start,
        end=support.end,
        resource=support.resource,
        memory_id=support.memory_id,
    )


def _supports(item: Memory) -> tuple[Support, ...]:
    return () if item.item is None else item.item.supports


def _order(support: Support) -> tuple[object, ...]:
    place = support.resource or "", support.start, support.end
    return support.occurred_at, support.source, support.memory_id, *place, support.text
