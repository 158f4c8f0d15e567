"""The signals that are counted over every memory of a boundary, scaled, by name. Pure."""

from collections.abc import Sequence

import numpy as np

from agents.rules.index.bm25 import Postings, bm25
from agents.rules.index.columns import ColumnArrays, FloatArray
from agents.rules.index.turn_order import TurnOrder
from agents.rules.ranking.lexical_features import conversation_bm25, neighbourhood_bm25
from agents.rules.ranking.query_features import FeatureArrays, QueryFeatures
from agents.rules.ranking.scaling import FEATURE_SCALES, FIRST_STAGE_WEIGHTS


def lexical_fields(
    columns: ColumnArrays, postings: Sequence[Postings], order: TurnOrder, documents: int
) -> FeatureArrays:
    """`words`, `neighbourhood_bm25` and `conversation`."""
    found = {
        "words": bm25(postings, columns.lengths, documents),
        "around": neighbourhood_bm25(postings, columns.lengths, order, documents),
        "conversation": conversation_bm25(postings, columns),
    }
    return {name: FEATURE_SCALES[name].of(values) for name, values in found.items()}


def compute_fields(clues: QueryFeatures) -> FeatureArrays:
    """The fields by words, and as far as they are known `late` and `dense`."""
    seen = {"late": clues.maxsim, "dense": clues.dense}
    return {**clues.lexical, **{name: FEATURE_SCALES[name].of(one) for name, one in seen.items() if one is not None}}


def first_stage_score(fields: FeatureArrays) -> FloatArray:
    """A plain sum of the fields that tell most, by number."""
    total = np.zeros(len(fields["words"]))
    for name, weight in FIRST_STAGE_WEIGHTS.items():
        if name in fields:
            total += weight * fields[name]
    return total
