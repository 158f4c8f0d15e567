"""Fields: the features computed for every memory of a boundary, on fixed scales. Pure.

Scales are constants instead of a mean and deviation over the user's memories, so that a value means the same for twenty
memories and for fifty thousand: over twenty turns the statistics are noise, over fifty thousand those of unrelated
turns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agents.rules.index.bm25 import Postings, bm25
from agents.rules.index.columns import ColumnArrays, FloatArray
from agents.rules.index.turn_order import TurnOrder
from agents.rules.ranking.lexical_features import conversation_bm25, neighbourhood_bm25
from agents.rules.ranking.query_features import FeatureArrays, QueryFeatures


@dataclass(frozen=True, slots=True)
class Scale:
    """(value - middle) x steps."""

    middle: float
    steps: float

    def of(self, values: FloatArray) -> FloatArray:
        """Return scaled values, about -4..6."""
        scaled: FloatArray = (values - self.middle) * self.steps
        return scaled


FEATURE_SCALES: Mapping[str, Scale] = {
    "late": Scale(0.5, 12.0),
    "dense": Scale(0.3, 8.0),
    "words": Scale(0.0, 8.0),
    "around": Scale(0.0, 8.0),
    "conversation": Scale(0.0, 6.0),
}
"""By field. One scaled unit is about one deviation over a user's turns, on our conversations."""

FIRST_STAGE_WEIGHTS: Mapping[str, float] = {"late": 1.0, "words": 0.5, "around": 0.5, "dense": 0.3}
"""Weights of the first-stage score, a sum of fields that ranks nearly as well; it selects what is reranked."""


def lexical_fields(
    columns: ColumnArrays, postings: Sequence[Postings], order: TurnOrder, documents: int
) -> FeatureArrays:
    """Return the fields `words`, `around` and `conversation`."""
    found = {
        "words": bm25(postings, columns.lengths, documents),
        "around": neighbourhood_bm25(postings, columns.lengths, order, documents),
        "conversation": conversation_bm25(postings, columns),
    }
    return {name: FEATURE_SCALES[name].of(values) for name, values in found.items()}


def compute_fields(features: QueryFeatures) -> FeatureArrays:
    """Return the lexical fields, and `late` and `dense` if available."""
    vector = {"late": features.maxsim, "dense": features.dense}
    scaled = {name: FEATURE_SCALES[name].of(one) for name, one in vector.items() if one is not None}
    return {**features.lexical, **scaled}


def first_stage_score(fields: FeatureArrays) -> FloatArray:
    """Return the weighted sum of the available first-stage fields, by number."""
    total = np.zeros(len(fields["words"]))
    for name, weight in FIRST_STAGE_WEIGHTS.items():
        if name in fields:
            total += weight * fields[name]
    return total
