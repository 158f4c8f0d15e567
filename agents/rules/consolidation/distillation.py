"""Build the memory that a cluster of turns is distilled into, and decay the stability of items with age. Pure.

The same turns always give the same id. `stability` is the probability that an item still holds. Its initial value
follows from the record: from the turn that said it last, or from the number of turns. So decay is never applied twice,
and a repetition resets it. Age is counted in whole days and the result rounded: a second run on a day changes nothing.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from agents.rules.index.recency import HALF_LIFE_DAYS
from agents.rules.memory.identity import derive_distilled_id, hash_texts
from agents.rules.text.embedding_text import embedding_text
from agents.rules.text.entities import extract_entities
from schemas.state.memories import Evidence, Item, Memory, TextVersion, TurnUnderstanding
from schemas.state.modes import Decay, ModeSource

STABILITY_STEP = 0.05
"""Rounding step of stability: finer steps carry no information, and each change is a write."""

MIN_STABILITY_SHARE = 0.2
"""Share of the initial stability that never decays: an item that was never revoked may hold forever."""


def rule_of_succession(times: int) -> float:
    """Return the probability that what held `times` times holds once more (Laplace, 1774)."""
    return (times + 1) / (times + 2)


def decayed_stability(memory: Memory, at: datetime) -> float | None:
    """Return an item's stability at a time; None if it differs by less than half a step, or if it is no item."""
    item = memory.item
    if item is None:
        return None
    initial = item.supports[-1].stability if item.supports else rule_of_succession(len(memory.evidence))
    days = max(0, (at - memory.occurred_at).days)
    remaining = MIN_STABILITY_SHARE + (1 - MIN_STABILITY_SHARE) * 0.5 ** (days / HALF_LIFE_DAYS[memory.decay])
    now = initial if days == 0 else _rounded(initial * remaining)
    return None if abs(now - item.stability) < STABILITY_STEP / 2 else round(now, 3)


def apply_decay(memory: Memory, at: datetime) -> Memory:
    """Set an item's stability to its value at a time."""
    stability = decayed_stability(memory, at)
    if stability is None or memory.item is None:
        return memory
    return memory.model_copy(update={"item": memory.item.model_copy(update={"stability": stability})})


def _rounded(stability: float) -> float:
    return round(stability / STABILITY_STEP) * STABILITY_STEP


class Source(NamedTuple):
    """The fields of a turn that distilling needs: a user may have a hundred thousand turns in memory."""

    memory_id: str
    turn_id: str
    content_hash: str
    text: str
    voice: str
    occurred_at: datetime
    latest_at: datetime
    offset: int
    mode_source: ModeSource
    decay: Decay
    importance: float | None
    is_superseded: bool = False


def source_of(memory: Memory) -> Source:
    """Return the fields of a turn's memory."""
    return Source(
        memory_id=memory.memory_id,
        turn_id=memory.turn_id or "",
        content_hash=memory.content_hash,
        text=memory.text,
        voice=memory.speaker or (memory.role or ""),
        occurred_at=memory.occurred_at,
        latest_at=memory.latest_at,
        offset=memory.source,
        mode_source=memory.mode_source,
        decay=memory.decay,
        importance=memory.importance,
        is_superseded=memory.superseded_by is not None,
    )


def distilled_memory(
    scope: Mapping[str, str],
    boundary: str,
    mode: str,
    sources: Sequence[Source],
    text: str,
    *,
    confidence: float,
    run: str,
    at: datetime,
) -> Memory:
    """Return the distilled memory of these turns, not embedded yet. `confidence` lies in 0..1."""
    ordered = sorted(sources, key=lambda source: (source.occurred_at, source.offset))
    first, last = ordered[0], ordered[-1]
    memory = Memory(
        memory_id=derive_distilled_id(scope, mode, [source.memory_id for source in sources]),
        turn_id=None,
        conversation_id=None,
        scope=dict(scope),
        boundary=boundary,
        type="semantic",
        mode=mode,
        mode_source=last.mode_source,
        role=None,
        text=text,
        occurred_at=last.occurred_at,
        source=max(source.offset for source in sources),
        latest=max(source.offset for source in sources),
        latest_at=max(source.latest_at for source in sources),
        importance=max((one.importance for one in sources if one.importance is not None), default=None),
        entities=extract_entities(text),
        evidence=tuple(_evidence(source) for source in ordered),
        decay=last.decay,
        versions=(TextVersion(text_hash=hash_texts([text]), first_seen=at),),
        content_hash="",
        reading=TurnUnderstanding(text_hash=hash_texts([text])),
        origin="distilled",
        item=Item(
            confidence=round(confidence, 3),
            stability=round(rule_of_succession(len(sources)), 3),
            valid_from=first.occurred_at,
            run=run,
        ),
    )
    return apply_decay(memory.model_copy(update={"content_hash": hash_texts([embedding_text(memory)])}), at)


def _evidence(source: Source) -> Evidence:
    return Evidence(turn_id=source.turn_id, start=0, end=len(source.text), memory_id=source.memory_id)
