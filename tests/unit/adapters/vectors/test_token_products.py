"""Products of token vectors are those of whole numbers, also of the greatest."""

import numpy as np
import pytest

from streams.adapters.vectors.embedded.maxsim import MAX_QUESTION_NUMBER, multiply, shift, unshift
from streams.adapters.vectors.embedded.packed_vectors import PACKED_STEPS

GREATEST = int(PACKED_STEPS) - 1


@pytest.mark.parametrize("dim", [1, 3, 64, 128, 384])
@pytest.mark.parametrize("rows", [1, 16, 17])
def test_products_are_exact(dim: int, rows: int) -> None:
    random = np.random.default_rng(dim)
    tokens = random.integers(-GREATEST, GREATEST + 1, (70, dim)).astype(np.int8)
    question = random.integers(-MAX_QUESTION_NUMBER, MAX_QUESTION_NUMBER + 1, (dim, rows)).astype(np.int8)
    tokens[:2] = [[GREATEST], [-GREATEST]]
    question[:, 0] = MAX_QUESTION_NUMBER
    expected = question.T.astype(np.int64) @ tokens.T.astype(np.int64)
    assert multiply(question, shift(tokens)).tolist() == expected.tolist()


def test_shifted_tokens_are_shifted_back() -> None:
    tokens = np.arange(-128, 128).astype(np.int8).reshape(-1, 8)
    assert shift(tokens).ravel().tolist() == list(range(256))
    assert np.array_equal(unshift(shift(tokens)), tokens)
