"""Memories without a vector among those that have one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from agents.rules.index.columns import FloatArray, Mask
from agents.rules.ranking.rank_calibration import calibrate_by_rank

SEEN = np.array([True, True, True, False, False])
BY_ALL = np.array([2.0, 4.0, 1.0, 9.0, -9.0])


def placed(*by_words: float) -> list[float]:
    """What two memories without a vector get, beside three that have one, whose words say 1, 2 and 3."""
    found: list[float] = calibrate_by_rank(np.array([1.0, 2.0, 3.0, *by_words]), BY_ALL, SEEN)[3:].tolist()
    return found


def test_what_has_a_vector_stands_as_it_is() -> None:
    assert calibrate_by_rank(np.arange(5.0), BY_ALL, SEEN)[:3].tolist() == [2.0, 4.0, 1.0]


def test_the_same_rank_by_words_is_worth_the_same() -> None:
    assert placed(3.0, 1.0) == [4.0, 1.0]
    assert placed(2.0, 1.5) == [2.0, 1.5]


def test_beyond_the_ranks_a_step_counts_as_by_words() -> None:
    assert placed(3.5, -1.0) == [4.5, -1.0]


def test_of_those_equal_by_words_the_best_counts() -> None:
    found = calibrate_by_rank(
        np.array([1.0, 1.0, 3.0, 1.0]), np.array([2.0, 5.0, 7.0, 0.0]), np.array([True, True, True, False])
    )
    assert found[3] == 5.0


def test_where_nothing_has_a_vector_words_are_all() -> None:
    assert calibrate_by_rank(np.array([1.0, 2.0]), np.zeros(2), np.zeros(2, np.bool_)).tolist() == [1.0, 2.0]


VALUES = st.integers(-20, 20).map(float)


@given(
    arrays.arrays(np.float64, 12, elements=VALUES),
    arrays.arrays(np.float64, 12, elements=VALUES),
    arrays.arrays(np.bool_, 12),
)
def test_none_stands_lower_than_its_words_say(by_words: FloatArray, by_all: FloatArray, seen: Mask) -> None:
    found = calibrate_by_rank(by_words, by_all, seen)
    for place in np.flatnonzero(~seen):
        assert (found[seen] > found[place]).sum() <= (by_words[seen] > by_words[place]).sum()
    in_order = np.argsort(by_words[~seen], kind="stable")
    assert (np.diff(found[~seen][in_order]) >= 0).all(), "among each other they stand as their words say"
