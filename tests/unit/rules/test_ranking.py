"""The blend of the signals."""

import json
from dataclasses import replace

import numpy as np
import pytest

from agents.rules.bm25 import Postings
from agents.rules.ranking import Signals, Weights, beside, best, blend, recency, share

NONE = np.zeros(3)
READY = np.ones(3, np.bool_)
SILENT = Signals(NONE, NONE, NONE, NONE, NONE, NONE, NONE)
EQUAL = {
    "dense": 1,
    "lexical": 1,
    "neighbours": 1,
    "recency": 1,
    "importance": 1,
    "entity": 1,
    "speaker": 1,
}


def weights(**changed: float) -> Weights:
    return Weights.loads(json.dumps(EQUAL | changed))


def test_a_score_is_the_weighted_mean_of_the_signals() -> None:
    signals = replace(SILENT, dense=np.array([1.0, 0.5, 0.0]), lexical=np.array([0.0, 1.0, 0.0]))
    assert blend(signals, weights(dense=4), READY).tolist() == pytest.approx([0.4, 0.3, 0.0])


def test_what_has_no_vector_yet_counts_as_near_as_its_words_tell() -> None:
    signals = replace(SILENT, dense=np.array([0.8, 0.0, 0.0]), lexical=np.array([0.0, 0.4, 0.2]))
    scores = blend(signals, weights(), np.array([True, False, False]))
    assert scores.tolist() == pytest.approx([0.8 / 7, (0.8 + 0.4) / 7, (0.4 + 0.2) / 7], abs=1e-5)


def test_scores_stay_within_bounds() -> None:
    ones = Signals(*[np.ones(3)] * 7)
    assert blend(ones, weights(dense=100, speaker=0), READY).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        json.dumps(EQUAL | {"colour": 1}),
        json.dumps(EQUAL | {"dense": -1}),
        json.dumps(EQUAL | {"dense": "much"}),
        json.dumps(EQUAL | {"dense": float("nan")}),
        json.dumps(dict.fromkeys(EQUAL, 0)),
        "not json",
    ],
)
def test_weights_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"ranking weights|Expecting|could not convert"):
        Weights.loads(text)


def test_a_signal_is_explained_by_the_memory() -> None:
    signals = replace(SILENT, entity=np.array([0.0, 0.25, 0.0]))
    assert signals.of(1).model_dump() == dict.fromkeys(EQUAL, 0.0) | {"entity": 0.25}


def test_the_turns_beside_a_turn_count_by_half_and_missing_ones_not() -> None:
    signal = np.array([1.0, 0.0, 0.5])
    assert beside(signal, np.array([-1, 0, 1]), np.array([1, 2, -1])).tolist() == [0.0, 0.75, 0.0]


def test_recency_halves_after_the_half_life_and_never_jumps() -> None:
    ages = np.array([-5.0, 0.0, 10.0, 10.001, 1e9])
    values = recency(ages, np.full(5, 10.0))
    assert values[:3].tolist() == [1.0, 1.0, 0.5]
    assert 0 < values[2] - values[3] < 0.001
    assert 0 < values[4] < 0.001
    assert recency(ages, np.full(5, np.inf)).tolist() == [1.0] * 5


def test_the_share_of_entities() -> None:
    both, one = Postings(np.array([0, 2]), np.array([1, 1])), Postings(np.array([2]), np.array([9]))
    assert share([both, one], 3).tolist() == [0.5, 0.0, 1.0]
    assert share([], 3).tolist() == [0, 0, 0]


def test_the_best_come_first_and_equal_ones_by_id() -> None:
    scores = np.array([0.5, 0.9, 0.5, 0.5, 0.1])
    ids = {0: "d", 1: "c", 2: "b", 3: "a", 4: "e"}
    everybody = np.ones(5, np.bool_)
    assert best(scores, everybody, 3, ids) == [1, 3, 2]
    assert best(scores, everybody, 100, ids) == [1, 3, 2, 0, 4]
    assert best(scores, scores < 0.6, 1, ids) == [3]
    assert best(scores, ~everybody, 3, ids) == []
