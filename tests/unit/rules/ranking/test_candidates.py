"""Which memories of a large boundary are compared token by token."""

import numpy as np

from agents.rules.index.bm25 import Postings
from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import MemoryKind, Trait
from agents.rules.ranking.candidates import MAX_LEXICAL_CANDIDATES, select_candidates
from agents.rules.ranking.field_scores import lexical_fields

KIND = MemoryKind((("user_id", "ana"),), "general", "episodic", "medium")
MANY = 1000


def roster() -> MemoryColumns:
    rows = [MemoryRow(number, f"m{number}", 0, number, number, 5, 0.5, False, "a") for number in range(MANY)]
    return MemoryColumns(rows, {0: Trait(KIND, "c1", None)})


def chosen(near: list[str], numbers: list[int]) -> list[str]:
    memories = roster()
    postings = [Postings(np.array(numbers, np.int64), np.ones(len(numbers), np.int64))]
    by_words = lexical_fields(memories.columns, postings, memories.order(), memories.documents)
    return select_candidates(near, by_words, memories, memories.columns.live[:])


def test_the_nearest_and_those_with_the_words_are_taken_with_their_neighbours() -> None:
    assert chosen(["m10"], [500]) == ["m9", "m10", "m11", "m498", "m499", "m500", "m501", "m502"]


def test_a_word_that_all_have_does_not_take_all() -> None:
    assert len(chosen([], list(range(MANY)))) <= 2 * MAX_LEXICAL_CANDIDATES + 2


def test_what_was_found_and_is_gone_is_passed_over() -> None:
    assert chosen(["gone"], []) == []
