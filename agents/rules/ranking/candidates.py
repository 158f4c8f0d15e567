"""Which memories of a large boundary are worth comparing token by token: the best from several sides. Pure."""

from collections.abc import Sequence

import numpy as np

from agents.rules.index.columns import MISSING, FloatArray, IntArray, Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.ranking.query_features import FeatureArrays

MAX_LEXICAL_CANDIDATES = 300
"""Memories that are taken by the words of a turn, and by those of a turn with its neighbours, each."""


def select_candidates(near: Sequence[str], by_words: FeatureArrays, roster: MemoryColumns, admitted: Mask) -> list[str]:
    """The ids of the nearest (`near`), of the best by words, and of the turns beside any of them, by number."""
    order = roster.order()
    nearest = np.array([roster.number_of[one] for one in near if one in roster.number_of], np.int64)
    chosen = np.concatenate([nearest, _best(by_words["words"], admitted), _best(by_words["around"], admitted)])
    wide = np.unique(np.concatenate([chosen, order.before[chosen], order.after[chosen]]))
    return [roster.id_of[number] for number in wide[wide != MISSING].tolist()]


def _best(scores: FloatArray, admitted: Mask) -> IntArray:
    numbers = np.flatnonzero(admitted & (scores > 0))
    if len(numbers) <= MAX_LEXICAL_CANDIDATES:
        return numbers
    return numbers[np.argsort(-scores[numbers], kind="stable")[:MAX_LEXICAL_CANDIDATES]]
