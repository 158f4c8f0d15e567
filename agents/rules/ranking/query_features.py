"""Inputs of ranking: everything computed for the memories of a boundary and one question. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agents.rules.index.bm25 import Postings
from agents.rules.index.columns import ColumnArrays, FloatArray, Mask
from agents.rules.index.derived_columns import DerivedColumns
from agents.rules.index.turn_order import TurnOrder
from agents.rules.query.questions import Question

ModelVariant = Literal["tokens", "vectors", "words"]

MODEL_VARIANTS: tuple[ModelVariant, ...] = ("tokens", "vectors", "words")
"""Variants of the ranking model, by available inputs: token and pooled vectors, pooled vectors only, words only."""

FeatureArrays = Mapping[str, FloatArray]
"""Fields by name; arrays of shape (memories,), by number."""


@dataclass(frozen=True, slots=True)
class QueryFeatures:
    """Arrays have shape (memories,); all data comes from memories of one boundary.

    `postings` has one entry per term of the question, `entities` one per name in it; `lexical` are the lexical fields.
    `dense` are cosines of the pooled vectors, of a cut text that of its best passage, and `whole` those of whole texts;
    `maxsim` are late interaction scores. They are None without usable vectors; their values are estimates for memories
    that are not `embedded`. `named` marks memories said by a speaker that the
    question names; `recency` is in 0..1.
    """

    question: Question
    derived: DerivedColumns
    documents: int
    postings: Sequence[Postings]
    lexical: FeatureArrays
    entities: Sequence[Postings]
    named: Mask
    recency: FloatArray
    embedded: Mask
    dense: FloatArray | None = None
    whole: FloatArray | None = None
    maxsim: FloatArray | None = None

    @property
    def variant(self) -> ModelVariant:
        """The model variant for the available inputs."""
        if self.dense is None:
            return "words"
        return "vectors" if self.maxsim is None else "tokens"

    @property
    def columns(self) -> ColumnArrays:
        """The columns of the boundary."""
        return self.derived.columns

    @property
    def order(self) -> TurnOrder:
        """Neighbours and positions of the turns."""
        return self.derived.order
