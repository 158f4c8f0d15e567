"""The pooled vectors of a boundary with many memories, in 24-bit steps: 3 bytes a number, of which a search reads one.

A vector is its integers times its own scale. The upper 8 bits of all rows are multiplied by the question; the distance
of each row from its upper part bounds the error, so that the rows that may be among the nearest are known, some 500.
Their cosines are computed from all bits.

Guaranteed: the nearest of all, not of a sample; a cosine depends on the memory's own vector and the question alone, to
the last digit, and differs from that of the stored vector by some 1e-7 at most.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from schemas.models.vectors import Matrix, MemoryFilter, Nearest, Point, Vector
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.embedded.int8_products import int8_products
from streams.adapters.vectors.embedded.packed_rows import FilterFields, half_whole_vector, precise_unit_vector
from streams.adapters.vectors.embedded.row_table import INITIAL_ROWS, ROW_BYTES, RowTable, with_capacity
from streams.adapters.vectors.embedded.scoring import RowNumbers, ScoreArray, best_of

MAX_UPPER = 127
"""The greatest upper part."""

LOWER_STEPS = 2**16
"""Steps of the lower part in one of the upper: all bits are below 2^23, exact in 32-bit floats."""

ROUNDING_MARGIN = 1e-5
"""More than 32-bit floats add to the error of a product of the upper parts."""


class PooledRow(NamedTuple):
    """What is kept of a point: its pooled vector, of length 1, or shorter as the mean of passages."""

    memory_id: str
    kind: FilterFields
    occurred_ms: int
    pooled: Vector

    @classmethod
    def of(cls, point: Point) -> Self:
        """Return what is kept of a written point."""
        fields = FilterFields.of(point.mode, point.type, point.scope)
        return cls(point.memory_id, fields, point.occurred_ms, half_whole_vector(point))


class QuantisedVectors:
    """The vectors of one boundary, by row of a `RowTable`."""

    def __init__(self, fingerprint: Fingerprint) -> None:
        self._table = RowTable()
        self._upper = np.zeros((INITIAL_ROWS, fingerprint.dim), np.int8)
        self._lower = np.zeros((INITIAL_ROWS, fingerprint.dim), np.int16)
        self._scales = np.zeros(INITIAL_ROWS, np.float32)
        self._errors = np.zeros(INITIAL_ROWS, np.float32)
        """The length of what the upper part leaves of each vector."""

    @property
    def rows(self) -> Mapping[str, int]:
        """The row of each memory."""
        return self._table.rows

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        return self._upper.nbytes + self._lower.nbytes + (ROW_BYTES + 8) * len(self._table.ids)

    @property
    def needs_compaction(self) -> bool:
        """True if more than half of the rows are dead."""
        return self._table.needs_compaction

    def put(self, rows: Iterable[PooledRow]) -> None:
        """Add or replace points, each once."""
        ids, kinds, times, vectors = zip(*rows, strict=True)
        new = self._table.add(ids, kinds, times)
        self._upper, self._lower = with_capacity(self._upper, new.stop), with_capacity(self._lower, new.stop)
        self._scales, self._errors = with_capacity(self._scales, new.stop), with_capacity(self._errors, new.stop)
        parts = _Parts.of(np.array(vectors))
        self._upper[new], self._lower[new] = parts.upper, parts.lower
        self._scales[new], self._errors[new] = parts.scales, parts.errors

    def remove(self, memory_id: str) -> None:
        """Remove a point; unknown ids are ignored."""
        self._table.remove(memory_id)

    def nearest(self, query: Vector, where: MemoryFilter, limit: int) -> Nearest:
        """Return the nearest by the pooled vector, best first, ties by id."""
        question = precise_unit_vector(query)
        rows = self._candidates(question, self._table.admitted_rows(where), limit)
        return best_of(self._table.ids, rows, self._cosines(rows, question), limit)

    def _candidates(self, question: Vector, rows: RowNumbers, limit: int) -> RowNumbers:
        """Return those of the rows, all at the most, that may be among the nearest."""
        if not 0 < limit < len(rows):
            return rows
        count, asked = len(self._table.ids), _Parts.of(question[np.newaxis])
        products = int8_products(self._upper[:count], asked.upper[0])
        if len(rows) < count:
            products = products[rows]
        cosines = products * (self._scales[rows] * asked.scales[0])
        # |q v - q' v'| <= |q - q'| |v'| + |q| |v - v'|, with |q| = 1, |v| <= 1 and |v'| <= 1 + |v - v'|.
        margins = asked.errors[0] + self._errors[rows] * (1 + asked.errors[0]) + ROUNDING_MARGIN
        least = cosines - margins
        found: RowNumbers = rows[cosines + margins >= np.partition(least, -limit)[-limit]]
        return found

    def _cosines(self, rows: RowNumbers, question: Vector) -> ScoreArray:
        steps = self._upper[rows] * np.float32(LOWER_STEPS) + self._lower[rows]
        # Not a matrix product: see `BoundaryVectors.nearest`.
        products = np.einsum("ij,j->i", steps, question) * (self._scales[rows] / LOWER_STEPS)
        cosines: ScoreArray = np.clip(products, -1.0, 1.0).astype(np.float64)
        return cosines


class _Parts(NamedTuple):
    """Vectors as integers: (upper + lower / `LOWER_STEPS`) x scale."""

    upper: NDArray[np.int8]
    lower: NDArray[np.int16]
    scales: NDArray[np.float32]
    errors: NDArray[np.float32]

    @classmethod
    def of(cls, vectors: Matrix) -> Self:
        wide = vectors.astype(np.float64)
        greatest = np.abs(wide).max(axis=1)
        # As 32-bit floats from here on, so that the steps fit the scale that is kept; of a zero vector any will do.
        scales = np.where(greatest > 0, greatest / MAX_UPPER, 1.0).astype(np.float32)
        limit = MAX_UPPER * LOWER_STEPS
        ratio = wide / scales[:, np.newaxis].astype(np.float64)
        steps = np.clip(np.rint(ratio * LOWER_STEPS), -limit, limit).astype(np.int32)
        upper = (steps + LOWER_STEPS // 2) >> 16
        lower = steps - (upper << 16)
        left = wide - upper * scales[:, np.newaxis].astype(np.float64)
        errors = np.sqrt(np.square(left).sum(axis=1))
        return cls(upper.astype(np.int8), lower.astype(np.int16), scales, errors.astype(np.float32))
