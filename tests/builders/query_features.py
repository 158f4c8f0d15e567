"""Query features over a few turns, computed as in production but without a lexical index."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np
from modestream_client.vocabulary import Role

from agents.rules.cues.labels import label_memory
from agents.rules.index.columns import FloatArray
from agents.rules.index.memory_columns import MemoryColumns, MemoryKind, MemoryRow, Trait
from agents.rules.index.vocabulary import Postings
from agents.rules.query.questions import parse_question
from agents.rules.ranking.memory_features import QueryFeatures, lexical_fields
from agents.rules.text.tokenizer import tokenize
from tests.builders.memories import START, made


@dataclass(frozen=True)
class Line:
    text: str
    speaker: str = "Ana"
    conversation: str | None = "c1"
    after: timedelta = timedelta(0)
    role: Role = "user"


def query_features_of(
    question: str, lines: Sequence[Line], dense: FloatArray | None = None, maxsim: FloatArray | None = None
) -> QueryFeatures:
    """Return the features; turns are a minute apart plus `after`."""
    memories = _memory_columns(lines)
    asked = parse_question(question, memories.speakers)
    texts = [tokenize(line.text) for line in lines]
    postings = [_postings([text.count(term) for text in texts]) for term in asked.terms]
    return QueryFeatures(
        question=asked,
        derived=memories.derived(),
        documents=memories.documents,
        postings=postings,
        lexical=lexical_fields(memories.derived(), postings, memories.documents),
        entities=[_postings([line.text.count(entity) for line in lines]) for entity in asked.entities],
        named=memories.spoken_by(asked.named),
        recency=np.zeros(len(memories.columns.live)),
        embedded=memories.columns.live,
        dense=_pad(dense, memories),
        whole=_pad(dense, memories),
        maxsim=_pad(maxsim, memories),
    )


def _memory_columns(lines: Sequence[Line]) -> MemoryColumns:
    kind = MemoryKind((("user_id", "ana"),), "general", "episodic", "medium")
    traits = {number: Trait(kind, line.conversation, line.speaker) for number, line in enumerate(lines)}
    rows = [_row(number, line) for number, line in enumerate(lines)]
    return MemoryColumns(rows, traits)


def _row(number: int, line: Line) -> MemoryRow:
    memory = made(line.text, number, role=line.role)
    when: datetime = START + timedelta(minutes=number) + line.after
    return MemoryRow(
        number=number,
        memory_id=f"m{number}",
        trait=number,
        occurred_ms=round(when.timestamp() * 1000),
        source=number,
        length=len(tokenize(line.text)),
        importance=0.5,
        superseded=False,
        space=None,
        labels=int(label_memory(memory)),
    )


def _postings(counts: Sequence[int]) -> Postings:
    numbers = np.flatnonzero(counts)
    return Postings(numbers, np.array(counts, np.int64)[numbers])


def _pad(values: FloatArray | None, memories: MemoryColumns) -> FloatArray | None:
    return None if values is None else np.pad(values, (0, len(memories.columns.live) - len(values)))
