"""What all texts have in common is taken off, on the side that a text is on."""

import numpy as np
import pytest

from schemas.vectors import Vector
from streams.adapters.embedding.inference.pooled_centre import PASSAGE_MEAN, QUESTION_MEAN, PooledCentre

MEAN = np.array([[0.8, 0.0, 0.1]], np.float32)
CENTRE = PooledCentre.of({PASSAGE_MEAN: MEAN, QUESTION_MEAN: -MEAN})


def unit(*numbers: float) -> Vector:
    vector = np.array(numbers, np.float32)
    scaled: Vector = vector / np.linalg.norm(vector)
    return scaled


def test_texts_that_differ_little_from_the_mean_are_far_apart() -> None:
    one, other = unit(1, 0.3, 0), unit(1, -0.3, 0)
    assert one @ other > 0.8
    assert CENTRE.of_passage(one) @ CENTRE.of_passage(other) < 0.2


def test_vectors_keep_length_one() -> None:
    assert np.linalg.norm(CENTRE.of_passage(unit(1, 2, 3))) == pytest.approx(1)
    assert np.linalg.norm(CENTRE.of_query(unit(1, 2, 3))) == pytest.approx(1)


def test_questions_have_a_mean_of_their_own() -> None:
    assert CENTRE.of_query(unit(1, 2, 3))[0] > unit(1, 2, 3)[0] > CENTRE.of_passage(unit(1, 2, 3))[0]


def test_the_mean_itself_stays_finite() -> None:
    assert np.isfinite(CENTRE.of_passage(MEAN[0])).all()


def test_without_a_mean_vectors_stay_as_they_are() -> None:
    vector = unit(1, 2, 3)
    assert PooledCentre.of({}).of_passage(vector) is vector
