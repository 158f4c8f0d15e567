import numpy as np
import pytest

from agents.rules.index.vocabulary import K1, B, Postings, bm25, idf


def postings(*numbers_and_counts: tuple[int, int]) -> Postings:
    numbers, counts = zip(*numbers_and_counts, strict=True) if numbers_and_counts else ((), ())
    return Postings(np.array(numbers, dtype=np.int64), np.array(counts, dtype=np.int64))


LENGTHS = np.array([10, 10, 40, 10], dtype=np.int64)


def test_formula_is_okapi_relative_to_the_maximum() -> None:
    [_, _, score, _] = bm25([postings((2, 1))], LENGTHS, 4)
    damping = K1 * (1 - B + B * 40 / LENGTHS.mean())
    assert score == pytest.approx((K1 + 1) / (1 + damping))


def test_rare_term_weighs_more() -> None:
    scores = bm25([postings((0, 1)), postings((1, 1), (2, 1), (3, 1))], LENGTHS, 4)
    assert scores[0] > scores[1] > 0


def test_shorter_text_scores_higher() -> None:
    scores = bm25([postings((0, 1), (2, 1))], LENGTHS, 4)
    assert scores[0] > scores[2] > 0


def test_memory_without_query_terms_scores_zero() -> None:
    assert bm25([postings((0, 1))], LENGTHS, 4)[3] == 0


def test_scores_stay_within_bounds() -> None:
    scores = bm25([postings((0, 255), (1, 1)), postings((0, 255))], LENGTHS, 4)
    assert scores.min() >= 0
    assert scores.max() <= 1


def test_no_terms_or_none_that_occur_give_zeros() -> None:
    assert bm25([], LENGTHS, 4).tolist() == [0, 0, 0, 0]
    assert bm25([postings()], LENGTHS, 4).tolist() == [0, 0, 0, 0]


def test_idf_of_ubiquitous_term_is_small_and_positive() -> None:
    assert 0 < idf(100, 100) < idf(50, 100) < idf(1, 100)
