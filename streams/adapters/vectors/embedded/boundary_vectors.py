"""The vectors of one boundary as matrices: a query is two products, and touches no ids but those found.

Guaranteed: a memory's score depends on its own vectors and the query alone, to the last digit, whatever its row and the
other rows. Each cosine is summed by itself; for MaxSim see `scoring`.
"""

from collections.abc import Sequence
from itertools import repeat
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from schemas.models.vectors import Matrix, MemoryFilter, Nearest, Vector
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.embedded.packed_vectors import FilterFields, PointRow, precise_unit_vector
from streams.adapters.vectors.embedded.scoring import Mask, QuestionSteps, RowNumbers, ScoreArray, best_of, time_mask

SCORING_BATCH_SIZE = 1024
"""Memories with tokens in one product: 8 MB of 32-bit floats for short texts."""

INITIAL_ROWS = 4
"""The capacity before it doubles. Many users have few memories: with one, 64 rows take 108 KB, 4 take 8."""

MAX_DEAD_ROWS = 64
"""Dead rows that are tolerated in addition to one for each live row."""

NO_ROW = -1

_Number = TypeVar("_Number", bound=np.generic)


class BoundaryVectors:
    """Rows in order of arrival. A replaced or removed row stays behind, dead."""

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
        """The approximate number of bytes."""
        return self._pooled.nbytes + self._tokens.nbytes + 300 * len(self._ids)

    @property
    def needs_compaction(self) -> bool:
        """True if more than half of the rows are dead."""
        return len(self._ids) > 2 * len(self.rows) + MAX_DEAD_ROWS

    def put(self, rows: Sequence[PointRow]) -> None:
        """Add or replace points: at least one, each once."""
        for row in rows:
            self.remove(row.memory_id)
        first, last = len(self._ids), len(self._ids) + len(rows)
        ends = self._ends[first] + np.cumsum([len(row.vectors.tokens) for row in rows], dtype=np.int64)
        self._ensure_capacity(last, int(ends[-1]))
        self.rows.update((row.memory_id, place) for place, row in enumerate(rows, first))
        self._ids += [row.memory_id for row in rows]
        self._live[first:last] = True
        self._kind[first:last] = [self._kinds.setdefault(row.kind, len(self._kinds)) for row in rows]
        self._times[first:last] = [row.occurred_ms for row in rows]
        self._pooled[first:last] = [row.vectors.pooled for row in rows]
        self._tokens[self._ends[first] : ends[-1]] = np.concatenate([row.vectors.tokens for row in rows])
        self._ends[first + 1 : last + 1] = ends

    def remove(self, memory_id: str) -> None:
        """Remove a point; unknown ids are ignored."""
        row = self.rows.pop(memory_id, None)
        if row is not None:
            self._live[row] = False

    def nearest(self, query: Vector, where: MemoryFilter, limit: int) -> Nearest:
        """Return the nearest by the pooled vector, best first, ties by id."""
        rows = np.flatnonzero(self._admitted_mask(where))
        # Not a matrix product, which sums the last rows in another order than the others.
        cosines = np.einsum("ij,j->i", self._pooled[: len(self._ids)], precise_unit_vector(query))
        return best_of(self._ids, rows, np.clip(cosines[rows], -1.0, 1.0).astype(np.float64), limit)

    def maxsim(self, question: Matrix, where: MemoryFilter, limit: int, memory_ids: Sequence[str] | None) -> Nearest:
        """Return the best by MaxSim: of all memories, or of these."""
        rows = self._rows_with_tokens(where, memory_ids)
        steps = QuestionSteps.of(question)
        parts = [
            self._maxsim_scores(rows[start : start + SCORING_BATCH_SIZE], steps)
            for start in range(0, len(rows), SCORING_BATCH_SIZE)
        ]
        return best_of(self._ids, rows, np.concatenate([*parts, np.zeros(0)]), limit)

    def _ensure_capacity(self, rows: int, tokens: int) -> None:
        while rows > len(self._live):
            self._live, self._kind = _double(self._live), _double(self._kind)
            self._times, self._ends = _double(self._times), _double(self._ends)
            self._pooled = _double(self._pooled)
        while tokens > len(self._tokens):
            self._tokens = _double(self._tokens)

    def _admitted_mask(self, where: MemoryFilter) -> Mask:
        count = len(self._ids)
        kinds = np.array([*(kind.admitted(where) for kind in self._kinds), False])
        mask: Mask = self._live[:count] & kinds[self._kind[:count]]
        return mask & time_mask(self._times[:count], where)

    def _rows_with_tokens(self, where: MemoryFilter, memory_ids: Sequence[str] | None) -> RowNumbers:
        mask = self._admitted_mask(where) & (np.diff(self._ends[: len(self._ids) + 1]) > 0)
        if memory_ids is None:
            return np.flatnonzero(mask)
        requested = np.unique(np.fromiter(map(self.rows.get, memory_ids, repeat(NO_ROW)), np.int64, len(memory_ids)))
        known: RowNumbers = requested[requested != NO_ROW]
        return known[mask[known]]

    def _maxsim_scores(self, rows: RowNumbers, steps: QuestionSteps) -> ScoreArray:
        firsts = self._ends[rows]
        counts = self._ends[rows + 1] - firsts
        starts = np.cumsum(counts) - counts
        if rows[-1] - rows[0] == len(rows) - 1:
            tokens = self._tokens[firsts[0] : firsts[0] + counts.sum()]
        else:
            tokens = self._tokens[np.repeat(firsts - starts, counts) + np.arange(counts.sum())]
        return steps.maxsim(tokens, starts)


def _double(column: NDArray[_Number]) -> NDArray[_Number]:
    """Return the column with twice the capacity; the new half takes no memory before it is written to."""
    longer = np.zeros((2 * len(column), *column.shape[1:]), column.dtype)
    longer[: len(column)] = column
    return longer
