"""MaxSim in pieces equals MaxSim of each memory by itself, to the last digit."""

import numpy as np

from schemas.models.vectors import Matrix
from streams.adapters.vectors.embedded.maxsim import PIECE_TOKENS, QuestionSteps, ShiftedTokens, shift, unshift
from streams.adapters.vectors.embedded.packed_vectors import PACKED_STEPS

DIM = 8


def unit_vectors(random: np.random.Generator, count: int) -> Matrix:
    plain = random.standard_normal((count, DIM)).astype(np.float32)
    unit: Matrix = plain / np.linalg.norm(plain, axis=1, keepdims=True)
    return unit


def packed(random: np.random.Generator, count: int) -> ShiftedTokens:
    steps = unit_vectors(random, count) * PACKED_STEPS
    return shift(np.rint(np.clip(steps, 1 - PACKED_STEPS, PACKED_STEPS - 1)).astype(np.int8))


def test_score_is_independent_of_the_memories_around() -> None:
    random = np.random.default_rng(5)
    memories = [packed(random, count) for count in (3, PIECE_TOKENS - 3, 1, PIECE_TOKENS + 70, 64, 2, 5000, 9)]
    starts = np.cumsum([0, *map(len, memories[:-1])])
    for rows in (1, 7, 20):
        question = QuestionSteps.of(unit_vectors(random, rows))
        alone = [float(question.maxsim(memory, np.zeros(1, np.int64))[0]) for memory in memories]
        assert question.maxsim(np.concatenate(memories), starts).tolist() == alone


def test_score_is_the_sum_of_the_best_products() -> None:
    random = np.random.default_rng(6)
    tokens, question = packed(random, 130), QuestionSteps.of(unit_vectors(random, 5))
    products = unshift(tokens).astype(np.int64) @ question.steps.astype(np.int64) * question.weights
    starts = np.array([0, 50, 64, 129])
    best = [products[start:end].max(axis=0) for start, end in zip(starts, [50, 64, 129, 130], strict=True)]
    expected = [float(sum(row) * question.unit) for row in best]
    assert question.maxsim(tokens, starts).tolist() == expected


def test_score_is_near_that_of_the_vectors_themselves() -> None:
    random = np.random.default_rng(7)
    # Words of little weight are short vectors.
    question = unit_vectors(random, 9) * np.linspace(0.01, 1.0, 9, dtype=np.float32)[:, None]
    tokens = packed(random, 400)
    cosines = question @ (unshift(tokens) / PACKED_STEPS).T
    expected = np.maximum.reduceat(cosines, np.arange(0, 400, 20), axis=1).sum(axis=0)
    found = QuestionSteps.of(question).maxsim(tokens, np.arange(0, 400, 20))
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_token_vector_of_zeros_scores_zero() -> None:
    random = np.random.default_rng(8)
    question = unit_vectors(random, 2)
    with_zeros = np.concatenate([question, np.zeros((1, DIM), np.float32)])
    tokens, starts = packed(random, 12), np.array([0, 5])
    assert (
        QuestionSteps.of(with_zeros).maxsim(tokens, starts).tolist()
        == QuestionSteps.of(question).maxsim(tokens, starts).tolist()
    )
