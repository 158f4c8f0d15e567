"""The share of a question that each text covers, of a cut text by the passage that covers most."""

import numpy as np
import pytest

from agents.rules.index.vocabulary import Postings, idf
from agents.rules.ranking.memory_features import covered_share


def uncut(*numbers: int) -> Postings:
    return Postings(np.array(numbers, np.int64), np.ones(len(numbers), np.int64))


def cut(masks: dict[int, int]) -> Postings:
    """Return a term's postings by number, with the passages that have it; 0 for an uncut text."""
    numbers = np.array(sorted(masks), np.int64)
    return Postings(numbers, np.ones(len(numbers), np.int64), np.array([masks[number] for number in numbers], np.int64))


def shares(*postings: Postings) -> list[float]:
    found: list[float] = covered_share(postings, 3, 20).tolist()
    return found


def test_an_uncut_text_covers_the_terms_that_it_has() -> None:
    assert shares(uncut(0), uncut(0), uncut(0), uncut(1)) == [0.75, 0.25, 0.0]


def test_terms_are_weighted_by_their_idf() -> None:
    rare, common = idf(1, 20), idf(2, 20)
    assert shares(uncut(0), uncut(1, 2))[:2] == pytest.approx([rare / (rare + common), common / (rare + common)])


def test_a_cut_text_covers_as_much_as_its_best_passage() -> None:
    assert shares(cut({0: 0b001}), cut({0: 0b010}), cut({0: 0b010}), cut({0: 0b100})) == [0.5, 0.0, 0.0]


def test_terms_in_several_passages_count_once() -> None:
    assert shares(cut({0: 0b111}), cut({0: 0b100})) == [1.0, 0.0, 0.0]


def test_cut_and_uncut_texts_stand_beside_each_other() -> None:
    both, other = cut({0: 0b01, 1: 0}), cut({0: 0b10, 1: 0})
    assert shares(both, other) == [0.5, 1.0, 0.0]


def test_a_term_that_no_cut_text_has_stands_beside_one_that_some_have() -> None:
    assert shares(cut({0: 0b01}), uncut(1), cut({0: 0b01}), uncut(1)) == [0.5, 0.5, 0.0]


def test_the_last_passage_of_the_longest_text_counts() -> None:
    assert shares(cut({0: 1 << 62}), cut({0: 1 | 1 << 62})) == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("postings", [[], [uncut()]])
def test_without_terms_that_occur_nothing_is_covered(postings: list[Postings]) -> None:
    assert shares(*postings) == [0.0, 0.0, 0.0]
