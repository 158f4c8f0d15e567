"""Candidates for late interaction in a large boundary."""

import numpy as np

from agents.rules.index.bm25 import Postings
from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import MemoryKind, Trait
from agents.rules.ranking.field_scores import lexical_fields
from agents.rules.ranking.late_interaction import MAX_LEXICAL_CANDIDATES, select_candidates

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
