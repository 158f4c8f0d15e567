"""The vectors of one boundary as matrices: a query is two products, and touches no ids but those found.

Guaranteed: a memory's score depends on its own vectors and the query alone, to the last digit, whatever its row and the
other rows. Each cosine is summed by itself; for MaxSim see `scoring`.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from schemas.models.vectors import MemoryFilter, Nearest, Vector
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.embedded.packed_rows import PointRow, precise_unit_vector
from streams.adapters.vectors.embedded.row_table import INITIAL_ROWS, NO_ROW, ROW_BYTES, RowTable, with_capacity
from streams.adapters.vectors.embedded.scoring import RowNumbers, best_of
from streams.adapters.vectors.embedded.text_columns import TextColumns, TextQuestion


class BoundaryVectors:
    """The vectors of all memories, by row of a `RowTable`."""

    def __init__(self, fingerprint: Fingerprint) -> None:
        self._table = RowTable()
        self._pooled = np.zeros((INITIAL_ROWS, fingerprint.dim), np.float32)
        self._texts = TextColumns(fingerprint)

    @property
    def rows(self) -> Mapping[str, int]:
        """The row of each memory."""
        return self._table.rows

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        return self._pooled.nbytes + self._texts.nbytes + ROW_BYTES * len(self._table.ids)

    @property
    def needs_compaction(self) -> bool:
        """True if more than half of the rows are dead."""
        return self._table.needs_compaction

    def put(self, rows: Sequence[PointRow]) -> None:
        """Add or replace points: at least one, each once."""
        ids, kinds, times = zip(*((row.memory_id, row.kind, row.occurred_ms) for row in rows), strict=True)
        new = self._table.add(ids, kinds, times)
        self._pooled = with_capacity(self._pooled, new.stop)
        self._pooled[new] = [row.vectors.pooled for row in rows]
        self._texts.put(new, [row.vectors.tokens for row in rows], [row.vectors.passages for row in rows])

    def remove(self, memory_id: str) -> None:
        """Remove a point; unknown ids are ignored."""
        self._table.remove(memory_id)

    def nearest(self, query: Vector, where: MemoryFilter, limit: int) -> Nearest:
        """Return the nearest by the pooled vector in its length, best first, ties by id."""
        rows = self._table.admitted_rows(where)
        # Not a matrix product, which sums the last rows in another order than the others.
        cosines = np.einsum("ij,j->i", self._pooled[: len(self._table.ids)], precise_unit_vector(query))
        return best_of(self._table.ids, rows, np.clip(cosines[rows], -1.0, 1.0).astype(np.float64), limit)

    def best_texts(
        self, question: TextQuestion, where: MemoryFilter, limit: int, memory_ids: Sequence[str] | None
    ) -> Nearest:
        """Return the best by their best text: of all memories, or of these."""
        rows = self._admitted_rows(where, memory_ids)
        found = self._texts.scores(rows, question).at(rows)
        return best_of(self._table.ids, found.rows, found.scores, limit, found.passages)

    def _admitted_rows(self, where: MemoryFilter, memory_ids: Sequence[str] | None) -> RowNumbers:
        if memory_ids is None:
            return self._table.admitted_rows(where)
        known = np.unique(self._table.rows_of(memory_ids))
        rows = known[known != NO_ROW]
        found: RowNumbers = rows[self._table.admitted_mask(where, rows)]
        return found
