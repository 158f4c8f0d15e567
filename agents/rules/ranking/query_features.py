"""Inputs of ranking for one question: the fields computed for every memory of a boundary, on fixed scales. Pure.

Scales are constants, not a mean and deviation over the user's memories, so that a value means the same for twenty
memories and for fifty thousand. BM25 of neighbourhoods and conversations is computed from the postings of single turns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agents.rules.index.bm25 import Postings, bm25, idf
from agents.rules.index.columns import MISSING, ColumnArrays, DerivedColumns, FloatArray, IntArray, Mask, TurnOrder
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


FEATURE_DECIMALS = 9
"""Decimals of a feature: more than are significant, fewer than floating point has. The last digit of a logarithm may
depend on memory alignment; equal memories must get equal values."""


@dataclass(frozen=True, slots=True)
class Scale:
    """(value - middle) x steps."""

    middle: float
    steps: float

    def of(self, values: FloatArray) -> FloatArray:
        """Return scaled values, about -4..6, rounded."""
        return ((values - self.middle) * self.steps).round(FEATURE_DECIMALS)


FEATURE_SCALES: Mapping[str, Scale] = {
    "late": Scale(0.5, 12.0),
    "dense": Scale(0.3, 8.0),
    "words": Scale(0.0, 8.0),
    "around": Scale(0.0, 8.0),
    "conversation": Scale(0.0, 6.0),
    "cover": Scale(0.0, 8.0),
}
"""By field. One scaled unit is about one deviation over a user's turns, on our conversations."""

FIRST_STAGE_WEIGHTS: Mapping[str, float] = {"late": 1.0, "words": 0.5, "around": 0.5, "dense": 0.3}
"""Weights of the first-stage score, a sum of fields that ranks nearly as well; it selects the memories to rerank."""


def lexical_fields(derived: DerivedColumns, postings: Sequence[Postings], documents: int) -> FeatureArrays:
    """Return the fields `words`, `around`, `conversation` and `cover`."""
    scores = {
        "cover": covered_share(postings, len(derived.columns.live), documents),
        "words": bm25(postings, derived.columns.lengths, documents),
        "around": neighbourhood_bm25(postings, derived, documents),
        "conversation": conversation_bm25(postings, derived),
    }
    return {name: FEATURE_SCALES[name].of(values) for name, values in scores.items()}


def compute_fields(features: QueryFeatures) -> FeatureArrays:
    """Return the lexical fields, and `late` and `dense` if available."""
    vector = {"late": features.maxsim, "dense": features.dense}
    scaled = {name: FEATURE_SCALES[name].of(scores) for name, scores in vector.items() if scores is not None}
    return {**features.lexical, **scaled}


def first_stage_score(fields: FeatureArrays) -> FloatArray:
    """Return the weighted sum of the available first-stage fields, by number."""
    total = np.zeros(len(fields["words"]))
    for name, weight in FIRST_STAGE_WEIGHTS.items():
        if name in fields:
            total += weight * fields[name]
    return total


def neighbourhood_bm25(postings: Sequence[Postings], derived: DerivedColumns, documents: int) -> FloatArray:
    """Return BM25 of each turn concatenated with the turns before and after it, in 0..1."""
    order, size, spread = derived.order, len(derived.columns.live), []
    for term in postings:
        turns = np.concatenate([term.numbers, order.before[term.numbers], order.after[term.numbers]])
        counts = np.bincount(np.where(turns == MISSING, size, turns), np.tile(term.counts, 3), size)
        numbers = np.flatnonzero(counts[:size] > 0)
        spread.append(Postings(numbers, counts[numbers].astype(np.int64)))
    return bm25(spread, derived.neighbourhood_lengths, documents)


def conversation_bm25(postings: Sequence[Postings], derived: DerivedColumns) -> FloatArray:
    """Return BM25 of each memory's conversation as one text, in 0..1; 0 for memories outside of conversations."""
    lengths, counted = derived.conversation_lengths, []
    size = len(lengths)
    for term in postings:
        conversation = derived.columns.conversations[term.numbers]
        counts = np.bincount(np.where(conversation == MISSING, size, conversation), term.counts, size + 1)[:size]
        numbers = np.flatnonzero(counts > 0)
        counted.append(Postings(numbers, counts[numbers].astype(np.int64)))
    scores = np.append(bm25(counted, lengths, int((lengths > 0).sum())), 0.0)
    return scores[derived.conversation_places]


def covered_share(postings: Sequence[Postings], memories: int, documents: int) -> FloatArray:
    """Return the share of the question that each text covers, terms weighted by their idf, in 0..1.

    Of a cut text it is that of the passage that covers most.
    """
    shares = np.zeros(memories)
    weights = [idf(len(term.numbers), documents) for term in postings]
    total = sum(weights)
    if not total:
        return shares
    cut = np.zeros(memories, np.bool_)
    for term, weight in zip(postings, weights, strict=True):
        shares[term.numbers] += weight
        if term.passages is not None:
            cut[term.numbers[term.passages != 0]] = True
    if cut.any():
        shares[cut] = _best_passage_weights(postings, weights, np.flatnonzero(cut), memories)
    return shares / total


def _best_passage_weights(
    postings: Sequence[Postings], weights: Sequence[float], numbers: IntArray, memories: int
) -> FloatArray:
    """Return, for each of these cut texts, the greatest weight of the terms in one of its passages."""
    row_of = np.full(memories, MISSING, np.int64)
    row_of[numbers] = np.arange(len(numbers))
    masks = [term.passages for term in postings if term.passages is not None]
    bits = np.arange(int(max(mask.max(initial=0) for mask in masks)).bit_length())
    by_passage = np.zeros((len(numbers), len(bits)))
    for term, weight in zip(postings, weights, strict=True):
        if term.passages is not None:
            in_cut = np.flatnonzero(term.passages)
            has_term = (term.passages[in_cut, np.newaxis] >> bits) & 1
            by_passage[row_of[term.numbers[in_cut]]] += weight * has_term
    best: FloatArray = by_passage.max(axis=1)
    return best


def matched_term_share(postings: Sequence[Postings], memories: int) -> FloatArray:
    """Return for each memory the share of these terms that it has; 0 without terms."""
    matched = np.zeros(memories)
    for term in postings:
        matched[term.numbers] += 1.0
    return matched / max(len(postings), 1)
