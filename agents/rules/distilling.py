"""A cluster of turns as one memory: its text where no language model writes it, and its record. Pure.

Enters: the turns of a cluster, the medoid first. Leaves: a text of bounded length, and a memory whose evidence is every
one of them. The same turns always give the same text and id.

The text is the medoid, then the sentences of others that add most: greedy maximal coverage of telling stems within a
budget, the gain divided by the length (Lin and Bilmes, "A Class of Submodular Functions for Document Summarization",
2011). A sentence that was said on another day than the medoid has its date.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from agents.rules.decaying import aged, succession
from agents.rules.entities import entities
from agents.rules.identity import distilled_id, text_hash
from agents.rules.neighbours import topic_of
from agents.rules.projection import embedding_text
from agents.rules.sentences import parts
from schemas.memories import Evidence, Item, Memory, Reading, TextVersion
from schemas.modes import Decay, ModeSource
from schemas.moments import iso

LONGEST_TEXT = 900
"""Characters of what is distilled: some 200 tokens, all of which every embedder reads."""

LONGEST_SAID = 600
"""Characters of the medoid that are taken: what is longer is no short turn that was said again and again."""

FEWEST_NEW = 2
"""Telling stems that a sentence must add: one alone is a number or a synonym."""

MOST_ADDED = 6
"""Sentences of other turns at most."""


GROUNDED = 0.5
"""Of a model's telling words those that were said: a text about the same shares most, one of its own invention few."""

USER = "user"
"""Whose memories these are: said without a name, a text is his."""


class Source(NamedTuple):
    """What distilling needs of a turn: small, as there may be a hundred thousand of one user."""

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
    """The turn that a memory is."""
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


def extracted_text(sources: Sequence[Source]) -> str:
    """What the turns say in their own words; `sources` come medoid first."""
    medoid = sources[0]
    lines = [_shortened(medoid.text, LONGEST_SAID)]
    for source, sentence in _added(sources, LONGEST_TEXT - len(lines[0])):
        is_of_another_day = source.occurred_at.date() != medoid.occurred_at.date()
        lines.append(f"{source.occurred_at.date()}: {sentence}" if is_of_another_day else sentence)
    who = "" if medoid.voice == USER else f"{medoid.voice}: "
    return f"{who}{' '.join(lines)} ({_how_often(sources)})"


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
    """The record of what stands for these turns, not yet embedded. `confidence` lies in 0..1."""
    ordered = sorted(sources, key=lambda source: (source.occurred_at, source.offset))
    first, last = ordered[0], ordered[-1]
    memory = Memory(
        memory_id=distilled_id(scope, mode, [source.memory_id for source in sources]),
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
        entities=entities(text),
        evidence=tuple(_evidence(source) for source in ordered),
        decay=last.decay,
        versions=(TextVersion(text_hash=text_hash([text]), first_seen=at),),
        content_hash="",
        reading=Reading(text_hash=text_hash([text])),
        origin="distilled",
        item=Item(
            confidence=round(confidence, 3),
            stability=round(succession(len(sources)), 3),
            valid_from=first.occurred_at,
            run=run,
        ),
    )
    return aged(memory.model_copy(update={"content_hash": text_hash([embedding_text(memory)])}), at)


def _added(sources: Sequence[Source], room: int) -> Iterator[tuple[Source, str]]:
    """The sentences of others that add most, with their turns, while there is room for them."""
    covered = set(topic_of(sources[0].text[:LONGEST_SAID]))
    waiting = [(source, part.strip(), topic_of(part)) for source in sources[1:] for part in parts(source.text)]
    for _ in range(MOST_ADDED):
        fitting = [one for one in waiting if len(one[2] - covered) >= FEWEST_NEW and len(one[1]) <= room]
        if not fitting:
            return
        # The first of equals: `waiting` is in the order of nearness to the medoid.
        source, sentence, stems = max(fitting, key=lambda one: len(one[2] - covered) / max(len(one[1]), 1) ** 0.5)
        covered |= stems
        room -= len(sentence)
        yield source, sentence


def _how_often(sources: Sequence[Source]) -> str:
    """How often and when, in signs that every language reads."""
    days = sorted({source.occurred_at.date() for source in sources})
    when = str(days[0]) if len(days) == 1 else f"{days[0]} \u2013 {days[-1]}"
    return f"{len(sources)}\u00d7, {when}"


def _evidence(source: Source) -> Evidence:
    return Evidence(turn_id=source.turn_id, start=0, end=len(source.text), memory_id=source.memory_id)


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most].rstrip()}\u2026"


def told(sources: Sequence[Source], clipped: Callable[[str], str]) -> str:
    """The turns as a model is shown them: JSON, one a line."""
    shown = ({"who": one.voice, "when": iso(one.occurred_at), "text": clipped(one.text)} for one in sources)
    return "[" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in shown) + "]"


def is_grounded(text: str, sources: Sequence[Source]) -> bool:
    """Whether a model's text says something, and most of its words were said."""
    stems = topic_of(text)
    said = frozenset[str]().union(*(topic_of(f"{one.voice} {one.text}") for one in sources))
    return bool(stems) and len(stems & said) >= GROUNDED * len(stems)
