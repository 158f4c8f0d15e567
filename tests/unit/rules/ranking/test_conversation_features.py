"""Aggregates of a field over a conversation."""

import numpy as np

from agents.rules.ranking.memory_features import conversation_best, shift_turns, take_or_zero
from tests.builders.query_features import Line, query_features_of

FIELD = np.array([1.0, 5.0, 3.0, 4.0, 2.0, 7.0, 6.0])
CONVERSATIONS = np.array([0, 0, 0, 0, 1, -1, -1])


def test_conversation_best() -> None:
    assert conversation_best(FIELD, CONVERSATIONS, np.arange(7)).tolist() == [5, 5, 5, 5, 2, 7, 6]
    assert conversation_best(FIELD, CONVERSATIONS, np.array([5, 0])).tolist() == [7, 5]


def test_last_positions() -> None:
    lines = [Line("a"), Line("b"), Line("c", conversation="c2"), Line("d", conversation=None)]
    positions = query_features_of("x", lines).derived.last_positions
    assert positions[[1, 0, -1, 0]].tolist() == [0, 1, 0, 1]


def test_shift_stops_at_the_end_of_a_conversation() -> None:
    order = query_features_of("x", [Line("a"), Line("b"), Line("c"), Line("d", conversation="c2")]).order
    numbers = np.arange(4)
    assert shift_turns(numbers, order, -1).tolist() == [-1, 0, 1, -1]
    assert shift_turns(numbers, order, 2).tolist() == [2, -1, -1, -1]
    assert take_or_zero(np.array([9.0, 8.0, 7.0, 6.0]), np.array([-1, 0, 3])).tolist() == [0, 9, 6]
