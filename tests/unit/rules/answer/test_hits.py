"""The best passages of a long text, and what they are scored by."""

import numpy as np
import pytest

from agents.rules.answer.hits import MAX_SHOWN_PASSAGES, PartScores, best_passages, part_scores, passage_coverage
from agents.rules.index.columns import FloatArray
from agents.rules.index.vocabulary import Postings, idf
from agents.rules.text.passages import Span
from schemas.models.vectors import Nearest, ScoredPassages

SPANS = [Span(0, 300), Span(302, 700), Span(702, 990), Span(991, 1400)]
NO_WORDS = np.zeros(4)


def starts(covered: FloatArray, cosines: PartScores, maxsims: PartScores) -> list[int]:
    """Return where the best passages begin, best first."""
    return [passage.start for passage in best_passages(SPANS, covered, cosines, maxsims)]


def scores(covered: FloatArray, cosines: PartScores, maxsims: PartScores) -> list[float]:
    return [passage.score for passage in best_passages(SPANS, covered, cosines, maxsims)]


def test_words_alone_tell_the_best_passage() -> None:
    assert starts(np.array([0.1, 0.2, 0.9, 0.3]), {}, {}) == [702, 991, 302]


def test_score_by_words_alone_is_the_covered_share() -> None:
    assert scores(np.array([0.1, 0.2, 0.9, 0.3]), {}, {}) == [0.9, 0.3, 0.2]


def test_meaning_tells_the_best_passage_where_no_words_match() -> None:
    assert starts(NO_WORDS, {0: 0.1, 1: 0.7, 2: 0.3, 3: 0.2}, {})[0] == 302


def test_score_is_the_mean_of_what_is_known() -> None:
    assert scores(np.array([0.6, 0, 0, 0]), {0: 0.2}, {})[0] == pytest.approx(0.4)


def test_score_is_the_mean_of_all_three() -> None:
    assert scores(np.array([0.6, 0, 0, 0]), {0: 0.2}, {0: 0.7})[0] == pytest.approx(0.5)


def test_passages_that_late_interaction_did_not_read_count_as_the_worst_that_it_read() -> None:
    assert scores(NO_WORDS, {}, {1: 0.8, 2: 0.4}) == [0.4, 0.2, 0.2]


def test_ties_are_in_the_order_of_the_text() -> None:
    assert starts(np.array([0.5, 0.5, 0.5, 0.5]), {}, {}) == [0, 302, 702]


def test_no_more_than_three_are_shown() -> None:
    assert len(best_passages(SPANS, NO_WORDS, {}, {})) == MAX_SHOWN_PASSAGES == 3


def test_a_text_of_two_passages_shows_both() -> None:
    assert len(best_passages(SPANS[:2], np.zeros(2), {}, {})) == 2


def test_texts_of_resources_are_no_passage_of_the_text() -> None:
    assert starts(NO_WORDS, {1: 0.2, 4: 0.9}, {4: 0.9})[0] == 302


def test_no_score_is_above_one() -> None:
    assert scores(np.array([1.0, 0, 0, 0]), {0: 1.00001}, {0: 1.2})[0] == 1.0


def test_no_score_is_below_zero() -> None:
    assert scores(NO_WORDS, {0: -0.4, 1: -0.4, 2: -0.4, 3: -0.4}, {}) == [0.0, 0.0, 0.0]


def nearest(memory_ids: list[str], rows: list[int], parts: list[int], values: list[float]) -> Nearest:
    """Return memories with these passages; a memory's row is its place in the list."""
    passages = ScoredPassages(np.array(rows, np.int64), np.array(parts, np.int64), np.array(values))
    return Nearest(memory_ids, np.zeros(len(memory_ids)), None, passages)


def test_scores_of_passages_are_by_memory_and_number() -> None:
    found = nearest(["a", "b"], [1, 0, 1], [0, 2, 5], [0.25, 0.5, 0.75])
    assert part_scores([found], ["a", "b"]) == {"a": {2: 0.5}, "b": {0: 0.25, 5: 0.75}}


def test_memories_that_are_not_asked_for_are_left_out() -> None:
    assert part_scores([nearest(["a", "b"], [0, 1], [0, 0], [0.5, 0.75])], ["b"]) == {"b": {0: 0.75}}


def test_memories_that_were_compared_but_not_found_are_left_out() -> None:
    compared = nearest(["a", "b"], [0, 1], [0, 0], [0.5, 0.75])
    compared.rows, compared.scores = compared.rows[:1], compared.scores[:1]
    assert part_scores([compared], ["a", "b"]) == {"a": {0: 0.5}}


def test_the_best_score_of_several_models_counts() -> None:
    found = [nearest(["a"], [0], [1], [0.5]), nearest(["a"], [0], [1], [0.75]), nearest(["a"], [0], [1], [0.25])]
    assert part_scores(found, ["a"]) == {"a": {1: 0.75}}


def test_without_passages_nothing_is_scored() -> None:
    assert part_scores([Nearest(["a"], np.array([0.9]))], ["a"]) == {}


def term(*numbers_and_masks: tuple[int, int]) -> Postings:
    numbers, masks = (np.array(column, np.int64) for column in zip(*numbers_and_masks, strict=True))
    return Postings(numbers, np.ones(len(numbers), np.int64), masks)


def test_a_passage_covers_the_share_of_the_terms_that_it_has() -> None:
    rare, also_rare = term((3, 0b011)), term((3, 0b010))
    assert passage_coverage([rare, also_rare], 3, 4, 10).tolist() == [0.5, 1.0, 0.0, 0.0]


def test_rare_terms_cover_more() -> None:
    rare, common = term((3, 0b01)), term(*((number, 0b10) for number in range(8)))
    weights = idf(1, 10), idf(8, 10)
    assert passage_coverage([rare, common], 3, 2, 10) == pytest.approx(np.array(weights) / sum(weights))


def test_a_term_of_other_texts_covers_nothing() -> None:
    assert passage_coverage([term((2, 0b1), (4, 0b1))], 3, 2, 10).tolist() == [0.0, 0.0]


def test_a_term_behind_the_last_posting_covers_nothing() -> None:
    assert passage_coverage([term((2, 0b1))], 3, 2, 10).tolist() == [0.0, 0.0]


def test_a_term_of_uncut_texts_covers_nothing() -> None:
    assert passage_coverage([Postings(np.array([3]), np.array([1]))], 3, 2, 10).tolist() == [0.0, 0.0]


def test_without_terms_nothing_is_covered() -> None:
    assert passage_coverage([], 3, 2, 10).tolist() == [0.0, 0.0]


def test_the_last_passage_of_the_longest_text_is_covered() -> None:
    assert passage_coverage([term((3, 1 << 62))], 3, 63, 10).argmax() == 62
