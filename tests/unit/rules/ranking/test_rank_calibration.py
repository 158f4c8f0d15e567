"""Calibration of memories without a vector."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from agents.rules.index.columns import FloatArray, Mask
from agents.rules.ranking.ranking import calibrate_by_rank

EMBEDDED = np.array([True, True, True, False, False])
BY_ALL = np.array([2.0, 4.0, 1.0, 9.0, -9.0])


def calibrated(*by_words: float) -> list[float]:
    """Return the scores of two memories without a vector, among three with vectors and lexical scores of 1, 2 and 3."""
    found: list[float] = calibrate_by_rank(np.array([1.0, 2.0, 3.0, *by_words]), BY_ALL, EMBEDDED)[3:].tolist()
    return found


def test_embedded_memories_keep_their_score() -> None:
    assert calibrate_by_rank(np.arange(5.0), BY_ALL, EMBEDDED)[:3].tolist() == [2.0, 4.0, 1.0]


def test_same_rank_by_words_gets_the_same_score() -> None:
    assert calibrated(3.0, 1.0) == [4.0, 1.0]
    assert calibrated(2.0, 1.5) == [2.0, 1.5]


def test_scores_beyond_the_ranks_are_extrapolated() -> None:
    assert calibrated(3.5, -1.0) == [4.5, -1.0]


def test_ties_by_words_get_the_best_score() -> None:
    found = calibrate_by_rank(
        np.array([1.0, 1.0, 3.0, 1.0]), np.array([2.0, 5.0, 7.0, 0.0]), np.array([True, True, True, False])
    )
    assert found[3] == 5.0


def test_without_vectors_scores_by_words_are_returned() -> None:
    assert calibrate_by_rank(np.array([1.0, 2.0]), np.zeros(2), np.zeros(2, np.bool_)).tolist() == [1.0, 2.0]


VALUES = st.integers(-20, 20).map(float)


@given(
    arrays.arrays(np.float64, 12, elements=VALUES),
    arrays.arrays(np.float64, 12, elements=VALUES),
    arrays.arrays(np.bool_, 12),
)
def test_no_memory_ranks_lower_than_by_words(by_words: FloatArray, by_all: FloatArray, embedded: Mask) -> None:
    found = calibrate_by_rank(by_words, by_all, embedded)
    for place in np.flatnonzero(~embedded):
        assert (found[embedded] > found[place]).sum() <= (by_words[embedded] > by_words[place]).sum()
    in_order = np.argsort(by_words[~embedded], kind="stable")
    assert (np.diff(found[~embedded][in_order]) >= 0).all(), "among each other they stand as their words say"
