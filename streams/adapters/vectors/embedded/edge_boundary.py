"""The vectors of one boundary as matrices, so that a question is two products and no id is touched but those found.

In go points as they were packed; out come scored ids. Guaranteed: a memory's score depends on its own vectors and the
question alone, to the last digit, wherever its row stands and whatever else is held. A cosine is a sum of its own, and
late interaction is counted in integers that 32-bit floats hold exactly, in any order of summation.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import repeat
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from schemas.modes import Fingerprint
from schemas.vectors import Matrix, MemoryFilter, Scored, Vector
from streams.adapters.vectors.embedded.edge_packing import QUANTISATION_STEPS, QuantisedTokens, precise_unit_vector
from streams.adapters.vectors.embedded.edge_rows import FilterFields, PointRow

RowNumbers = NDArray[np.int64]
Mask = NDArray[np.bool_]
ScoreArray = NDArray[np.float64]

QUESTION_STEPS = 2.0**16
"""Steps of a question's longest token vector. A product sum is below 181 x (2^16 + 6) < 2^24: exact in 32-bit floats.
Rounding to these steps moves a score by some 1e-6; the grid of the memories' own tokens moves it by 2e-3."""

SCORING_BATCH_SIZE = 1024
"""Memories whose tokens are compared in one product: 8 MB of 32-bit floats for short texts."""

MATMUL_BLOCK_TOKENS = 64
"""Tokens in one call of the library that multiplies matrices. From 200 on it takes all cores for a product, and where
they have other work waits ten times as long as one core needs."""

INITIAL_ROWS = 64
"""Room of a boundary that is not held yet."""

MAX_DEAD_ROWS = 64
"""Rows that may be dead before as many dead as live ones are too many."""

NO_ROW = -1
"""In place of the row of a memory that is not held."""

_Number = TypeVar("_Number", bound=np.generic)

_SCORED: Callable[[tuple[str, float]], Scored] = partial(tuple.__new__, Scored)
"""`Scored` of a pair, in a quarter of the time: a question gets a thousand."""


class BoundaryVectors:
    """Rows by order of arrival. One that is replaced or removed stays behind, dead."""

    def __init__(self, fingerprint: Fingerprint) -> None:
        self.rows: dict[str, int] = {}
        """The row of each memory."""
        self._ids: list[str] = []
        self._kinds: dict[FilterFields, int] = {}
        self._live = np.zeros(INITIAL_ROWS, np.bool_)
        self._kind = np.zeros(INITIAL_ROWS, np.int64)
        self._times = np.zeros(INITIAL_ROWS, np.int64)
        self._pooled = np.zeros((INITIAL_ROWS, fingerprint.dim), np.float32)
        self._ends = np.zeros(INITIAL_ROWS + 1, np.int64)
        """Row i has the tokens from `_ends[i]` to `_ends[i + 1]`."""
        self._tokens = np.zeros((INITIAL_ROWS, fingerprint.token_dim), np.int8)

    @property
    def size(self) -> int:
        """Bytes, about."""
        return self._pooled.nbytes + self._tokens.nbytes + 300 * len(self._ids)

    @property
    def needs_compaction(self) -> bool:
        """Whether more than half of the rows are dead."""
        return len(self._ids) > 2 * len(self.rows) + MAX_DEAD_ROWS

    def put(self, rows: Sequence[PointRow]) -> None:
        """Add points, at least one and each once, or replace them."""
        for row in rows:
            self.remove(row.memory_id)
        first, last = len(self._ids), len(self._ids) + len(rows)
        ends = self._ends[first] + np.cumsum([len(row.vectors.tokens) for row in rows], dtype=np.int64)
        self._make_room(last, int(ends[-1]))
        self.rows.update((row.memory_id, place) for place, row in enumerate(rows, first))
        self._ids += [row.memory_id for row in rows]
        self._live[first:last] = True
        self._kind[first:last] = [self._kinds.setdefault(row.kind, len(self._kinds)) for row in rows]
        self._times[first:last] = [row.occurred_ms for row in rows]
        self._pooled[first:last] = [row.vectors.pooled for row in rows]
        self._tokens[self._ends[first] : ends[-1]] = np.concatenate([row.vectors.tokens for row in rows])
        self._ends[first + 1 : last + 1] = ends

    def remove(self, memory_id: str) -> None:
        """Let a point go; unknown ids are ignored."""
        row = self.rows.pop(memory_id, None)
        if row is not None:
            self._live[row] = False

    def nearest(self, question: Vector, where: MemoryFilter, limit: int) -> list[Scored]:
        """The nearest by the pooled vector, best first, equal ones by id."""
        rows = np.flatnonzero(self._admitted(where))
        # A sum for each row, in an order of its own: a product of matrices sums last rows in another way than others.
        cosines = np.einsum("ij,j->i", self._pooled[: len(self._ids)], precise_unit_vector(question))
        return self._best(rows, np.clip(cosines[rows], -1.0, 1.0).astype(np.float64), limit)

    def maxsim(
        self, question: Matrix, where: MemoryFilter, limit: int, memory_ids: Sequence[str] | None
    ) -> list[Scored]:
        """The best by late interaction: of all, or of these."""
        rows = self._with_tokens(where, memory_ids)
        step = float(np.sqrt(np.square(question.astype(np.float64)).sum(axis=1)).max()) / QUESTION_STEPS or 1.0
        fine = np.rint(question / step).astype(np.float32).T
        parts = [
            self._sums(rows[start : start + SCORING_BATCH_SIZE], fine)
            for start in range(0, len(rows), SCORING_BATCH_SIZE)
        ]
        return self._best(rows, np.concatenate([*parts, np.zeros(0)]) * (step / float(QUANTISATION_STEPS)), limit)

    def _make_room(self, rows: int, tokens: int) -> None:
        while rows > len(self._live):
            self._live, self._kind = _doubled(self._live), _doubled(self._kind)
            self._times, self._ends = _doubled(self._times), _doubled(self._ends)
            self._pooled = _doubled(self._pooled)
        while tokens > len(self._tokens):
            self._tokens = _doubled(self._tokens)

    def _admitted(self, where: MemoryFilter) -> Mask:
        count = len(self._ids)
        kinds = np.array([*(kind.admitted(where) for kind in self._kinds), False])
        mask: Mask = self._live[:count] & kinds[self._kind[:count]]
        if where.since_ms is not None:
            mask &= self._times[:count] >= where.since_ms
        if where.until_ms is not None:
            mask &= self._times[:count] < where.until_ms
        return mask

    def _with_tokens(self, where: MemoryFilter, memory_ids: Sequence[str] | None) -> RowNumbers:
        mask = self._admitted(where) & (np.diff(self._ends[: len(self._ids) + 1]) > 0)
        if memory_ids is None:
            return np.flatnonzero(mask)
        asked = np.unique(np.fromiter(map(self.rows.get, memory_ids, repeat(NO_ROW)), np.int64, len(memory_ids)))
        known: RowNumbers = asked[asked != NO_ROW]
        return known[mask[known]]

    def _sums(self, rows: RowNumbers, fine: Matrix) -> ScoreArray:
        """For each of these rows the sum of the best products, in steps."""
        firsts = self._ends[rows]
        counts = self._ends[rows + 1] - firsts
        starts = np.cumsum(counts) - counts
        if rows[-1] - rows[0] == len(rows) - 1:
            tokens = self._tokens[firsts[0] : firsts[0] + counts.sum()]
        else:
            tokens = self._tokens[np.repeat(firsts - starts, counts) + np.arange(counts.sum())]
        best = np.maximum.reduceat(_products(tokens, fine), starts, axis=0)
        sums: ScoreArray = best.sum(axis=1, dtype=np.float64)
        return sums

    def _best(self, rows: RowNumbers, scores: ScoreArray, limit: int) -> list[Scored]:
        if limit < 1 or not len(rows):
            return []
        if len(rows) > limit:
            kept = scores >= np.partition(scores, -limit)[-limit]
            rows, scores = rows[kept], scores[kept]
        order = np.argsort(-scores, kind="stable")
        falling = scores[order]
        ids = map(self._ids.__getitem__, rows[order].tolist())
        found = list(map(_SCORED, zip(ids, falling.tolist(), strict=True)))
        if not bool((np.diff(falling) < 0).all()):
            found.sort(key=lambda one: (-one.score, one.memory_id))
        return found[:limit]


def _doubled(column: NDArray[_Number]) -> NDArray[_Number]:
    """The column with as much room again, which takes no memory before it is written to."""
    longer = np.zeros((2 * len(column), *column.shape[1:]), column.dtype)
    longer[: len(column)] = column
    return longer


def _products(tokens: QuantisedTokens, fine: Matrix) -> Matrix:
    """The products of each token with each row of the question, shape (tokens, rows of the question)."""
    blocks = np.zeros((-(-len(tokens) // MATMUL_BLOCK_TOKENS), MATMUL_BLOCK_TOKENS, tokens.shape[1]), np.float32)
    blocks.reshape(-1, tokens.shape[1])[: len(tokens)] = tokens
    products: Matrix = (blocks @ fine).reshape(-1, fine.shape[1])[: len(tokens)]
    return products
