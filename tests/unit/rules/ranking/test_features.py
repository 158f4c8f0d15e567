from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agents.rules.index.columns import IntArray
from agents.rules.index.vocabulary import Postings
from agents.rules.ranking.features import LinearModel, RankingFeatures, RankingWeights
from agents.rules.ranking.memory_features import (
    QueryFeatures,
    compute_fields,
    conversation_best,
    conversation_bm25,
    matched_term_share,
    neighbourhood_bm25,
    shift_turns,
    take_or_zero,
)
from tests.builders.query_features import Line, query_features_of

TALK = [
    Line("Is there a violin?", conversation="c1"),
    Line("Yes, in the attic.", conversation="c1"),
    Line("Good night.", conversation="c1"),
    Line("Soup again.", conversation="c2"),
    Line("A violin and an attic.", conversation=None),
]


def test_neighbourhood_bm25_includes_adjacent_turns() -> None:
    features = query_features_of("violin attic", TALK)
    found = neighbourhood_bm25(features.postings, features.derived, features.documents)
    assert found[0] > 0
    assert found[1] > found[2] > found[3] == 0, "the last has one neighbour with one of the words, the fourth none"
    assert found[4] > 0, "what stands alone is read by itself"


def test_conversation_bm25_treats_a_conversation_as_one_text() -> None:
    features = query_features_of("violin attic", TALK)
    found = conversation_bm25(features.postings, features.derived)[:5].tolist()
    assert found[0] == found[1] == found[2] > 0
    assert found[3:] == [0, 0]


def test_matched_term_share() -> None:
    both, first = Postings(np.array([0, 2]), np.array([1, 1])), Postings(np.array([2]), np.array([9]))
    assert matched_term_share([both, first], 3).tolist() == [0.5, 0.0, 1.0]
    assert matched_term_share([], 3).tolist() == [0, 0, 0]


def test_bm25_without_memories() -> None:
    features = query_features_of("violin", [])
    assert neighbourhood_bm25(features.postings, features.derived, 0).tolist() == pytest.approx([])
    assert conversation_bm25(features.postings, features.derived).tolist() == []


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


WEIGHTS = Path(__file__).parents[4] / "agents" / "data" / "ranking_weights.json"

LINES = [
    Line("When do we deploy to fly.io?"),
    Line("On Monday at 5pm, I prefer the morning.", "Bo"),
    Line("It costs 20 dollars for 3 hours because the old host is slow.", "Ana", "c2"),
    Line("Bo likes the blue one, order AB-12345.", "Bo", "c2"),
    Line("ok", "Ana", None),
]
EVERY = np.arange(len(LINES))


@pytest.fixture(scope="module")
def model() -> LinearModel:
    return RankingWeights.loads(WEIGHTS.read_text()).models["words"]


def values(features: QueryFeatures, numbers: IntArray, model: LinearModel) -> dict[str, Sequence[float] | None]:
    found = RankingFeatures(features, compute_fields(features), numbers)
    every = {name: found.of(name) for name in model.weights}
    return {name: None if value is None else value.tolist() for name, value in every.items()}


@pytest.mark.parametrize("numbers", [EVERY, EVERY[1:4], EVERY[:0]], ids=["same memories", "fewer", "none"])
def test_earlier_question_changes_no_feature(model: LinearModel, numbers: IntArray) -> None:
    alone = query_features_of("What did Bo say on AB-12345 that costs 20 dollars?", LINES)
    earlier = query_features_of("when do we deploy?", LINES)
    values(earlier, EVERY, model)
    after = replace(alone, derived=earlier.derived)
    assert values(after, numbers, model) == values(alone, numbers, model)


def test_features_of_no_question_are_computed_once() -> None:
    features = query_features_of("when do we deploy?", LINES)
    kept = features.derived.query_independent_features(EVERY)
    RankingFeatures(features, compute_fields(features), EVERY).of("length")
    again = RankingFeatures(query_features := replace(features), compute_fields(query_features), EVERY.copy())
    assert again.of("length") is kept.features["length"]
