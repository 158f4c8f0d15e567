"""MaxSim over packed token vectors, and the best of scored rows.

Guaranteed: a score depends on the memory's own tokens and the question alone, to the last digit, whatever the others.
MaxSim is computed in integers that 32-bit floats hold exactly.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from schemas.models.vectors import Matrix, MemoryFilter, Nearest
from streams.adapters.vectors.embedded.packed_rows import PACKED_STEPS, PackedTokens

RowNumbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
ScoreArray = NDArray[np.float64]

QUESTION_STEPS = 2.0**16
"""Steps of a query's longest token vector. A dot product is below 181 x (2^16 + 6) < 2^24: exact in 32-bit floats.
Rounding to these steps moves a score by some 1e-6; the quantisation of the memories' tokens moves it by 2e-3."""

MATMUL_BLOCK_TOKENS = 64
"""Tokens in one call of BLAS. From 200 on it uses all cores for a product and, if these are busy, waits ten times as
long as one core needs."""

PIECE_TOKENS = 4096
"""Tokens that are multiplied at a stretch. Their 32-bit floats, 2 MB, stay in the processor's cache; those of all
tokens of 1,000 turns, 30 MB, are new pages of memory at each question, which take longer than the products."""


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
        ends = np.append(starts[1:], len(tokens))
        best = np.empty((self.steps.shape[1], len(starts)), np.float32)
        products = _Products(self.steps, max(int((ends - starts).max()), min(len(tokens), PIECE_TOKENS)))
        for first, last in _pieces(starts, ends):
            piece = products.of(tokens[starts[first] : ends[last - 1]])
            np.maximum.reduceat(piece, starts[first:last] - starts[first], axis=1, out=best[:, first:last])
        sums: ScoreArray = best.sum(axis=0, dtype=np.float64)
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


def _pieces(starts: RowNumbers, ends: RowNumbers) -> Iterator[tuple[int, int]]:
    """Yield runs of memories that have at most `PIECE_TOKENS` tokens together, or are one memory."""
    first = 0
    while first < len(starts):
        last = max(int(np.searchsorted(ends, starts[first] + PIECE_TOKENS, "right")), first + 1)
        yield first, last
        first = last


class _Products:
    """Multiplies each row of a query by tokens, in memory that is used again."""

    def __init__(self, query_steps: Matrix, most_tokens: int) -> None:
        blocks, (dim, rows) = -(-most_tokens // MATMUL_BLOCK_TOKENS), query_steps.shape
        self._query = np.ascontiguousarray(query_steps.T)
        self._tokens = np.empty((blocks, MATMUL_BLOCK_TOKENS, dim), np.float32)
        self._products = np.empty((rows, blocks, MATMUL_BLOCK_TOKENS), np.float32)

    def of(self, tokens: PackedTokens) -> Matrix:
        """Return the products of shape (rows of the query, tokens), valid until the next call."""
        blocks = self._tokens[: -(-len(tokens) // MATMUL_BLOCK_TOKENS)]
        rows = blocks.reshape(-1, tokens.shape[1])
        rows[: len(tokens)], rows[len(tokens) :] = tokens, 0
        products = self._products[:, : len(blocks)]
        np.matmul(self._query, blocks.transpose(0, 2, 1), out=products.transpose(1, 0, 2))
        found: Matrix = self._products.reshape(len(self._query), -1)[:, : len(tokens)]
        return found
