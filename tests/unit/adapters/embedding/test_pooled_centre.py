"""Centring of pooled vectors, with one mean for passages and one for queries."""

import numpy as np
import pytest

from schemas.models.vectors import Vector
from streams.adapters.embedding.inference.fastembed_model import PASSAGE_MEAN, QUESTION_MEAN, PooledCentre

MEAN = np.array([[0.8, 0.0, 0.1]], np.float32)
CENTRE = PooledCentre.of({PASSAGE_MEAN: MEAN, QUESTION_MEAN: -MEAN})


def unit(*numbers: float) -> Vector:
    vector = np.array(numbers, np.float32)
    scaled: Vector = vector / np.linalg.norm(vector)
    return scaled


def test_centring_spreads_vectors_that_lie_near_the_mean() -> None:
    first, second = unit(1, 0.3, 0), unit(1, -0.3, 0)
    assert first @ second > 0.8
    assert CENTRE.of_passage(first) @ CENTRE.of_passage(second) < 0.2


def test_vectors_keep_length_one() -> None:
    assert np.linalg.norm(CENTRE.of_passage(unit(1, 2, 3))) == pytest.approx(1)
    assert np.linalg.norm(CENTRE.of_query(unit(1, 2, 3))) == pytest.approx(1)


def test_queries_have_their_own_mean() -> None:
    assert CENTRE.of_query(unit(1, 2, 3))[0] > unit(1, 2, 3)[0] > CENTRE.of_passage(unit(1, 2, 3))[0]


def test_centring_the_mean_itself_is_finite() -> None:
    assert np.isfinite(CENTRE.of_passage(MEAN[0])).all()


def test_vectors_are_unchanged_without_a_mean() -> None:
    vector = unit(1, 2, 3)
    assert PooledCentre.of({}).of_passage(vector) is vector
