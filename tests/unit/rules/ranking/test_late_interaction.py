"""Candidates for late interaction in a large boundary."""

import numpy as np
import pytest

from agents.rules.index.memory_columns import MemoryColumns, MemoryKind, MemoryRow, Trait
from agents.rules.index.vocabulary import Postings
from agents.rules.ranking.late_interaction import (
    CONTINUATION_WEIGHT,
    MAX_LEXICAL_CANDIDATES,
    select_candidates,
    weight_query_tokens,
)
from agents.rules.ranking.memory_features import lexical_fields

KIND = MemoryKind((("user_id", "ana"),), "general", "episodic", "medium")
MANY = 1000


def memory_columns() -> MemoryColumns:
    rows = [MemoryRow(number, f"m{number}", 0, number, number, 5, 0.5, False, "a") for number in range(MANY)]
    return MemoryColumns(rows, {0: Trait(KIND, "c1", None)})


def chosen(near: list[str], numbers: list[int]) -> list[str]:
    memories = memory_columns()
    postings = [Postings(np.array(numbers, np.int64), np.ones(len(numbers), np.int64))]
    by_words = lexical_fields(memories.derived(), postings, memories.documents)
    return select_candidates(near, by_words, memories, memories.columns.live[:])


def test_nearest_and_lexical_matches_come_with_neighbours() -> None:
    assert chosen(["m10"], [500]) == ["m9", "m10", "m11", "m498", "m499", "m500", "m501", "m502"]


def test_common_word_does_not_select_all_memories() -> None:
    assert len(chosen([], list(range(MANY)))) <= 2 * MAX_LEXICAL_CANDIDATES + 2


def test_deleted_results_are_skipped() -> None:
    assert chosen(["gone"], []) == []


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
