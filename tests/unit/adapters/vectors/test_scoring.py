"""MaxSim in pieces equals MaxSim of each memory by itself, to the last digit."""

import numpy as np

from schemas.models.vectors import Matrix
from streams.adapters.vectors.embedded.packed_rows import PACKED_STEPS, PackedTokens
from streams.adapters.vectors.embedded.scoring import PIECE_TOKENS, QuestionSteps

DIM = 8


def unit_vectors(random: np.random.Generator, count: int) -> Matrix:
    plain = random.standard_normal((count, DIM)).astype(np.float32)
    unit: Matrix = plain / np.linalg.norm(plain, axis=1, keepdims=True)
    return unit


def packed(random: np.random.Generator, count: int) -> PackedTokens:
    tokens: PackedTokens = np.rint(unit_vectors(random, count) * PACKED_STEPS).astype(np.int8)
    return tokens


def test_score_is_independent_of_the_memories_around() -> None:
    random = np.random.default_rng(5)
    memories = [packed(random, count) for count in (3, PIECE_TOKENS - 3, 1, PIECE_TOKENS + 70, 64, 2, 5000, 9)]
    starts = np.cumsum([0, *map(len, memories[:-1])])
    for rows in (1, 7, 20):
        question = QuestionSteps.of(unit_vectors(random, rows))
        alone = [float(question.maxsim(one, np.zeros(1, np.int64))[0]) for one in memories]
        assert question.maxsim(np.concatenate(memories), starts).tolist() == alone


def test_score_is_the_sum_of_the_best_products() -> None:
    random = np.random.default_rng(6)
    tokens, question = packed(random, 130), QuestionSteps.of(unit_vectors(random, 5))
    products = tokens.astype(np.float64) @ question.steps.astype(np.float64)
    starts = np.array([0, 50, 64, 129])
    expected = [products[start:end].max(axis=0).sum() for start, end in zip(starts, [50, 64, 129, 130], strict=True)]
    assert question.maxsim(tokens, starts).tolist() == (np.array(expected) * question.unit).tolist()
