"""Weights of a question's tokens."""

import numpy as np
import pytest

from agents.rules.ranking.late_interaction import CONTINUATION_WEIGHT, weight_query_tokens

TEXT = "Is the violin new?"
SPANS = np.array([(0, 2), (3, 6), (7, 10), (10, 13), (14, 17), (17, 18)], np.int32)


def weights(frequencies: dict[str, int], documents: int = 100, text: str = TEXT) -> list[float]:
    rows = np.eye(len(SPANS), dtype=np.float32)
    found: list[float] = weight_query_tokens(rows, SPANS, text, frequencies, documents).sum(axis=1).tolist()
    return found


def test_the_weights_sum_to_one() -> None:
    assert sum(weights({"violin": 3, "new": 20})) == pytest.approx(1.0, abs=1e-5)


def test_rare_words_outweigh_common_ones_and_stop_words() -> None:
    is_, the, violin, piece, new, mark = weights({"violin": 3, "new": 20})
    assert violin > new > is_ == the > mark > 0
    assert piece == pytest.approx(CONTINUATION_WEIGHT * violin)


def test_words_with_the_same_stem_share_a_weight() -> None:
    assert weights({"violins": 3, "new": 20}) == weights({"violin": 3, "new": 20})


def test_word_without_memories_weighs_most() -> None:
    assert weights({"violin": 0, "new": 20})[2] > weights({"violin": 3, "new": 20})[2]


def test_question_without_tokens() -> None:
    assert weight_query_tokens(np.zeros((0, 8), np.float32), np.zeros((0, 2), np.int32), "", {}, 0).shape == (0, 8)


def test_weights_without_memories_are_finite() -> None:
    assert np.isfinite(weights({}, documents=0)).all()
