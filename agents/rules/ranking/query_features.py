"""What is known of every memory of a boundary for one question, before it is weighed: arrays by number. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agents.rules.index.bm25 import Postings
from agents.rules.index.columns import ColumnArrays, FloatArray, Mask
from agents.rules.index.turn_order import TurnOrder
from agents.rules.query.questions import Question
from agents.rules.ranking.heads import ModelVariant

FeatureArrays = Mapping[str, FloatArray]
"""Signals over every memory of a boundary by name; arrays of shape (memories,), by number."""


@dataclass(frozen=True, slots=True)
class QueryFeatures:
    """All arrays have shape (memories,). Everything comes from memories of one boundary.

    `postings` has one entry for each term of the question, `entities` one for each name in it; `lexical` is what the
    postings say of each memory, those around it and its conversation, scaled. `dense` are cosines
    of the pooled vectors, `maxsim` the scores of late interaction; None where no memory can be seen by a model. `named`
    is what people said whom the question names, `recency` lies in 0..1. What is not `embedded` has no vector that can
    be asked, and what `dense` and `maxsim` say of it is supposed.
    """

    question: Question
    columns: ColumnArrays
    order: TurnOrder
    documents: int
    postings: Sequence[Postings]
    lexical: FeatureArrays
    entities: Sequence[Postings]
    named: Mask
    recency: FloatArray
    embedded: Mask
    dense: FloatArray | None = None
    maxsim: FloatArray | None = None

    @property
    def variant(self) -> ModelVariant:
        """By which weights such memories are ranked."""
        if self.dense is None:
            return "words"
        return "vectors" if self.maxsim is None else "tokens"
