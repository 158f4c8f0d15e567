"""MaxSim over packed token vectors, and the best of scored rows.

Guaranteed: a score depends on the memory's own tokens and the question alone, to the last digit, whatever the others.
MaxSim is computed in integers that 32-bit floats hold exactly.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from schemas.models.vectors import Matrix, MemoryFilter, Nearest
from streams.adapters.vectors.embedded.packed_vectors import PACKED_STEPS, PackedTokens

RowNumbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
ScoreArray = NDArray[np.float64]

QUESTION_STEPS = 2.0**16
"""Steps of a query's longest token vector. A dot product is below 181 x (2^16 + 6) < 2^24: exact in 32-bit floats.
Rounding to these steps moves a score by some 1e-6; the quantisation of the memories' tokens moves it by 2e-3."""

MATMUL_BLOCK_TOKENS = 64
"""Tokens in one call of BLAS. From 200 on it uses all cores for a product and, if these are busy, waits ten times as
long as one core needs."""


class QuestionSteps(NamedTuple):
    """A question's token vectors in steps, shape (token_dim, tokens), and the score of one step."""

    steps: Matrix
    unit: float

    @classmethod
    def of(cls, question: Matrix) -> Self:
        """Return the steps of at least one token vector."""
        step = float(np.sqrt(np.square(question.astype(np.float64)).sum(axis=1)).max()) / QUESTION_STEPS or 1.0
        return cls(np.rint(question / step).astype(np.float32).T, step / float(PACKED_STEPS))

    def maxsim(self, tokens: PackedTokens, starts: RowNumbers) -> ScoreArray:
        """Return the score of each memory, at least one; memory i has the tokens from `starts[i]` on, at least one."""
        best = np.maximum.reduceat(_products(tokens, self.steps), starts, axis=0)
        sums: ScoreArray = best.sum(axis=1, dtype=np.float64)
        return sums * self.unit


def time_mask(times: NDArray[np.int64], where: MemoryFilter) -> Mask:
    """Return which of these times the filter admits."""
    mask = np.ones(len(times), np.bool_)
    if where.since_ms is not None:
        mask &= times >= where.since_ms
    if where.until_ms is not None:
        mask &= times < where.until_ms
    return mask


def best_of(all_ids: Sequence[str], rows: RowNumbers, scores: ScoreArray, limit: int) -> Nearest:
    """Return the best of these rows of all ids, best first, ties by id."""
    if limit < 1 or not len(rows):
        return Nearest([], np.zeros(0))
    if len(rows) > limit:
        is_kept = scores >= np.partition(scores, -limit)[-limit]
        rows, scores = rows[is_kept], scores[is_kept]
    order = np.argsort(-scores, kind="stable")
    ids, scores = list(map(all_ids.__getitem__, rows[order].tolist())), scores[order]
    if not bool((scores[1:] < scores[:-1]).all()):
        # Ties by id: the scores are in order already.
        ids = [memory_id for _, memory_id in sorted(zip((-scores).tolist(), ids, strict=True))]
    return Nearest(ids, scores)[:limit]


def _products(tokens: PackedTokens, query_steps: Matrix) -> Matrix:
    """Multiply each token by each row of the query; shape (tokens, rows of the query)."""
    blocks = np.empty((-(-len(tokens) // MATMUL_BLOCK_TOKENS), MATMUL_BLOCK_TOKENS, tokens.shape[1]), np.float32)
    rows = blocks.reshape(-1, tokens.shape[1])
    rows[: len(tokens)], rows[len(tokens) :] = tokens, 0
    products: Matrix = (blocks @ query_steps).reshape(-1, query_steps.shape[1])[: len(tokens)]
    return products
