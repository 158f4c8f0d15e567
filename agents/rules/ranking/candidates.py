"""Select candidates for late interaction in a large boundary. Pure."""

from collections.abc import Sequence

import numpy as np

from agents.rules.index.columns import MISSING, FloatArray, IntArray, Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.ranking.query_features import FeatureArrays

MAX_LEXICAL_CANDIDATES = 300
"""Candidates taken by BM25 of the turn, and again by BM25 of the turn with its neighbours."""


def select_candidates(
    near: Sequence[str], by_words: FeatureArrays, memory_columns: MemoryColumns, admitted: Mask
) -> list[str]:
    """Return the ids of `near` (the ANN result), of the best by words, and of the neighbours of both."""
    order = memory_columns.order()
    nearest = np.array([memory_columns.number_of[one] for one in near if one in memory_columns.number_of], np.int64)
    chosen = np.concatenate([nearest, _best(by_words["words"], admitted), _best(by_words["around"], admitted)])
    wide = np.unique(np.concatenate([chosen, order.before[chosen], order.after[chosen]]))
    return [memory_columns.id_of[number] for number in wide[wide != MISSING].tolist()]


def _best(scores: FloatArray, admitted: Mask) -> IntArray:
    numbers = np.flatnonzero(admitted & (scores > 0))
    if len(numbers) <= MAX_LEXICAL_CANDIDATES:
        return numbers
    return numbers[np.argsort(-scores[numbers], kind="stable")[:MAX_LEXICAL_CANDIDATES]]
