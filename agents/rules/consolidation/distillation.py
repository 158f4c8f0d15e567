"""Distil a cluster of turns into one memory, its text extractive or a language model's; decay with age. Pure.

The same turns always give the same id. An extractive text is the medoid, then the sentences of other turns that add
most: greedy coverage of content stems within a budget, gain over length (Lin and Bilmes, "A Class of Submodular
Functions for Document Summarization", 2011). A sentence from another day than the medoid is dated.

`stability` is the probability that an item still holds. Its initial value follows from the record: from the turn that
said it last, or from the number of turns. So decay is never applied twice, and a repetition resets it. Age is counted
in whole days and the result rounded: a second run on a day changes nothing.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import reduce
from typing import NamedTuple

from modestream_client.hits import Evidence
from modestream_client.vocabulary import Decay, ModeSource

from agents.rules.clustering.knn import topic_stems
from agents.rules.index.columns import HALF_LIFE_DAYS
from agents.rules.memory.identity import derive_distilled_id, hash_texts
from agents.rules.text.passages import embedding_text
from agents.rules.text.sentences import split_sentences
from agents.rules.text.tokenizer import extract_entities
from schemas.moments import iso
from schemas.state.memories import Item, Memory, TextVersion, TurnUnderstanding
from schemas.state.visibility import EVERYWHERE, Visibility

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
    now = initial if days == 0 else round(initial * remaining / STABILITY_STEP) * STABILITY_STEP
    return None if abs(now - item.stability) < STABILITY_STEP / 2 else round(now, 3)


def apply_decay(memory: Memory, at: datetime) -> Memory:
    """Set an item's stability to its value at a time."""
    stability = decayed_stability(memory, at)
    if stability is None or memory.item is None:
        return memory
    return memory.model_copy(update={"item": memory.item.model_copy(update={"stability": stability})})


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
    visibility: Visibility = EVERYWHERE
    own_visibility: Visibility = EVERYWHERE


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
        visibility=memory.visibility,
        own_visibility=memory.own_visibility,
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
    """Return the distilled memory of these turns of one visibility, not embedded yet. `confidence` lies in 0..1.

    Its own visibility is the strictest of theirs: it has their texts.
    """
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
        evidence=tuple(
            Evidence(turn_id=one.turn_id, start=0, end=len(one.text), memory_id=one.memory_id) for one in ordered
        ),
        decay=last.decay,
        versions=(TextVersion(text_hash=hash_texts([text]), first_seen=at),),
        content_hash="",
        reading=TurnUnderstanding(text_hash=hash_texts([text])),
        origin="distilled",
        visibility=last.visibility,
        own_visibility=reduce(Visibility.limited_by, (one.own_visibility for one in sources)),
        item=Item(
            confidence=round(confidence, 3),
            stability=round(rule_of_succession(len(sources)), 3),
            valid_from=first.occurred_at,
            run=run,
        ),
    )
    return apply_decay(memory.model_copy(update={"content_hash": hash_texts([embedding_text(memory)])}), at)


MAX_DISTILLED_CHARS = 900
"""Characters of a summary: some 200 tokens, within the input limit of every embedder."""

MAX_MEDOID_CHARS = 600
"""Characters of the medoid that are used; a longer turn is hardly one that was said again and again."""

MIN_NEW_STEMS = 2
"""New content stems that a sentence must add: a single one is a number or a synonym."""

MAX_ADDED_SENTENCES = 6

MIN_GROUNDED_SHARE = 0.5
"""Share of the content stems of a model's text that must occur in the turns; an invented text shares few."""

USER_VOICE = "user"
"""The voice of the memories' owner, which is not named in a summary."""


def extractive_summary(sources: Sequence[Source]) -> str:
    """Summarise the turns in their own words; `sources` come medoid first."""
    medoid = sources[0]
    is_short = len(medoid.text) <= MAX_MEDOID_CHARS
    lines = [medoid.text if is_short else f"{medoid.text[:MAX_MEDOID_CHARS].rstrip()}\u2026"]
    for source, sentence in _select_sentences(sources, MAX_DISTILLED_CHARS - len(lines[0])):
        is_of_another_day = source.occurred_at.date() != medoid.occurred_at.date()
        lines.append(f"{source.occurred_at.date()}: {sentence}" if is_of_another_day else sentence)
    speaker = "" if medoid.voice == USER_VOICE else f"{medoid.voice}: "
    return f"{speaker}{' '.join(lines)} ({_count_and_dates(sources)})"


def render_sources(sources: Sequence[Source], clip: Callable[[str], str]) -> str:
    """Render the turns for a prompt: a JSON array with one turn a line."""
    turns = ({"who": one.voice, "when": iso(one.occurred_at), "text": clip(one.text)} for one in sources)
    return "[" + ",\n".join(json.dumps(turn, ensure_ascii=False) for turn in turns) + "]"


def is_grounded(text: str, sources: Sequence[Source]) -> bool:
    """True if a model's text has content, most of which occurs in the turns."""
    stems = topic_stems(text)
    source_stems = frozenset[str]().union(*(topic_stems(f"{one.voice} {one.text}") for one in sources))
    return bool(stems) and len(stems & source_stems) >= MIN_GROUNDED_SHARE * len(stems)


def _select_sentences(sources: Sequence[Source], budget: int) -> Iterator[tuple[Source, str]]:
    """Yield the sentences of other turns that add most, within `budget` characters."""
    covered = set(topic_stems(sources[0].text[:MAX_MEDOID_CHARS]))
    candidates = [(one, part.strip(), topic_stems(part)) for one in sources[1:] for part in split_sentences(one.text)]
    for _ in range(MAX_ADDED_SENTENCES):
        fitting = [one for one in candidates if len(one[2] - covered) >= MIN_NEW_STEMS and len(one[1]) <= budget]
        if not fitting:
            return
        # Ties go to the first: `candidates` are in order of similarity to the medoid.
        source, sentence, stems = max(fitting, key=lambda one: len(one[2] - covered) / max(len(one[1]), 1) ** 0.5)
        covered |= stems
        budget -= len(sentence)
        yield source, sentence


def _count_and_dates(sources: Sequence[Source]) -> str:
    """Return the number of turns and their dates, in symbols that need no translation."""
    days = sorted({source.occurred_at.date() for source in sources})
    when = str(days[0]) if len(days) == 1 else f"{days[0]} \u2013 {days[-1]}"
    return f"{len(sources)}\u00d7, {when}"
