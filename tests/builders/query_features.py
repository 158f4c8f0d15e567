"""Clues of a question among a few turns of one conversation, made as the product makes them but for the word index."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from agents.rules.cues.labels import label_memory
from agents.rules.index.bm25 import Postings
from agents.rules.index.columns import FloatArray
from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import MemoryKind, Trait
from agents.rules.query.questions import parse_question
from agents.rules.ranking.field_scores import lexical_fields
from agents.rules.ranking.query_features import QueryFeatures
from agents.rules.text.tokenizer import tokenize
from tests.builders.memories import START, made


@dataclass(frozen=True)
class Said:
    """One turn."""

    text: str
    speaker: str = "Ana"
    talk: str | None = "c1"
    after: timedelta = timedelta(0)


def clues_of(
    question: str, talk: Sequence[Said], dense: FloatArray | None = None, maxsim: FloatArray | None = None
) -> QueryFeatures:
    """The clues; a turn a minute, later by what it says."""
    roster = _roster(talk)
    asked = parse_question(question, roster.speakers)
    texts = [tokenize(one.text) for one in talk]
    postings = [_postings([text.count(term) for text in texts]) for term in asked.terms]
    return QueryFeatures(
        question=asked,
        columns=roster.columns,
        order=roster.order(),
        documents=roster.documents,
        postings=postings,
        lexical=lexical_fields(roster.columns, postings, roster.order(), roster.documents),
        entities=[_postings([one.text.count(entity) for one in talk]) for entity in asked.entities],
        named=roster.spoken_by(asked.named),
        recency=np.zeros(len(roster.columns.live)),
        embedded=roster.columns.live,
        dense=_as_long(dense, roster),
        maxsim=_as_long(maxsim, roster),
    )


def _roster(talk: Sequence[Said]) -> MemoryColumns:
    kind = MemoryKind((("user_id", "ana"),), "general", "episodic", "medium")
    traits = {place: Trait(kind, one.talk, one.speaker) for place, one in enumerate(talk)}
    rows = [_row(place, one) for place, one in enumerate(talk)]
    return MemoryColumns(rows, traits)


def _row(place: int, one: Said) -> MemoryRow:
    memory = made(one.text, place)
    when: datetime = START + timedelta(minutes=place) + one.after
    return MemoryRow(
        number=place,
        memory_id=f"m{place}",
        trait=place,
        occurred_ms=round(when.timestamp() * 1000),
        source=place,
        length=len(tokenize(one.text)),
        importance=0.5,
        superseded=False,
        space=None,
        labels=int(label_memory(memory)),
    )


def _postings(counts: Sequence[int]) -> Postings:
    numbers = np.flatnonzero(counts)
    return Postings(numbers, np.array(counts, np.int64)[numbers])


def _as_long(values: FloatArray | None, roster: MemoryColumns) -> FloatArray | None:
    """Padded to the length of the roster's columns."""
    return None if values is None else np.pad(values, (0, len(roster.columns.live) - len(values)))
