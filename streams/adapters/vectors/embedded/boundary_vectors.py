"""The vectors of one boundary as matrices: a query is two products, and touches no ids but those found.

Guaranteed: a memory's score depends on its own vectors and the query alone, to the last digit, whatever its row and the
other rows. Each cosine is summed by itself; for MaxSim see `maxsim`.
"""

from collections.abc import Mapping, Sequence
from itertools import repeat
from typing import Self

import numpy as np

from schemas.models.vectors import MemoryFilter, Nearest, PassageVectors, Vector
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.embedded.maxsim import Mask, RowNumbers, best_of, time_mask
from streams.adapters.vectors.embedded.packed_vectors import (
    FilterFields,
    PackedTokens,
    PointRow,
    RowStart,
    precise_unit_vector,
)
from streams.adapters.vectors.embedded.text_columns import (
    INITIAL_ROWS,
    TextColumns,
    TextQuestion,
    TextScores,
    with_capacity,
)

MAX_DEAD_ROWS = 64
"""Dead rows that are tolerated in addition to one for each live row."""

ROW_BYTES = 300
"""Of one row, about: its id, and the objects around it."""

NO_ROW = -1


class RowTable:
    """Rows of the memories of one boundary, in order of arrival: ids, and the fields that filters check.

    A replaced or removed row stays behind, dead. Vectors are columns beside these, of the same rows.
    """

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.ids: list[str] = []
        """By row, also of dead ones."""
        self._kinds: dict[FilterFields, int] = {}
        self._live = np.zeros(INITIAL_ROWS, np.bool_)
        self._kind = np.zeros(INITIAL_ROWS, np.int64)
        self._times = np.zeros(INITIAL_ROWS, np.int64)

    @property
    def needs_compaction(self) -> bool:
        """True if more than half of the rows are dead."""
        return len(self.ids) > 2 * len(self.rows) + MAX_DEAD_ROWS

    def remove(self, memory_id: str) -> None:
        """Remove a memory; unknown ids are ignored."""
        row = self.rows.pop(memory_id, None)
        if row is not None:
            self._live[row] = False

    def fields(self, rows: Sequence[int]) -> tuple[list[str], list[FilterFields], list[int]]:
        """Return ids, filter fields and times of these rows, as `_add_rows` takes them."""
        kinds = list(self._kinds)
        return (
            [self.ids[row] for row in rows],
            [kinds[place] for place in self._kind[rows].tolist()],
            self._times[rows].tolist(),
        )

    def admitted_rows(self, where: MemoryFilter, memory_ids: Sequence[str] | None = None) -> RowNumbers:
        """Return the rows that a filter admits: of all memories, or of these."""
        if memory_ids is None:
            rows = np.flatnonzero(self._live[: len(self.ids)])
        else:
            asked = np.unique(self.rows_of(memory_ids))
            rows = asked[asked != NO_ROW]
        mask = self.admitted_mask(where, rows)
        return rows if mask.all() else rows[mask]

    def admitted_mask(self, where: MemoryFilter, rows: RowNumbers) -> Mask:
        """Return which of these rows, none of them dead, a filter admits."""
        kinds = np.array([*(kind.admitted(where) for kind in self._kinds), False])
        mask: Mask = kinds[self._kind[rows]]
        return mask & time_mask(self._times[rows], where)

    def rows_of(self, memory_ids: Sequence[str]) -> RowNumbers:
        """Return the row of each of these memories, `NO_ROW` for an unknown one."""
        return np.fromiter(map(self.rows.get, memory_ids, repeat(NO_ROW)), np.int64, len(memory_ids))


class TokenRows(RowTable):
    """Some rows of a boundary without the pooled vectors of whole texts: token vectors and passages, as columns."""

    def __init__(self, fingerprint: Fingerprint) -> None:
        super().__init__()
        self._fingerprint = fingerprint
        self._texts = TextColumns(fingerprint)

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        return self._texts.nbytes + ROW_BYTES * len(self.ids)

    def put_packed(self, packed: Mapping[str, bytes]) -> None:
        if not packed:
            return
        starts = [RowStart.of(row) for row in packed.values()]
        kinds, times = [start.kind for start in starts], [start.occurred_ms for start in starts]
        texts = [start.texts(self._fingerprint, row) for start, row in zip(starts, packed.values(), strict=True)]
        self._add(list(packed), kinds, times, texts)

    def newer_half(self) -> Self:
        """Return the rows that were added last, half of them."""
        made = type(self)(self._fingerprint)
        # In order of their rows.
        rows = list(self.rows.values())[len(self.rows) // 2 :]
        if rows:
            made._add(*self.fields(rows), [self._texts.of(row) for row in rows])  # noqa: SLF001
        return made

    def scores(self, question: TextQuestion, where: MemoryFilter, rows: RowNumbers) -> TextScores:
        """Return scores of those of these rows that the filter admits, by their places in the given ones."""
        places = np.flatnonzero(self.admitted_mask(where, rows))
        return self._texts.scores(rows[places], question).at(places)

    def _add(
        self,
        memory_ids: Sequence[str],
        kinds: Sequence[FilterFields],
        times: Sequence[int],
        texts: Sequence[tuple[PackedTokens, PassageVectors | None]],
    ) -> slice:
        """Add or replace rows, at least one, each once; return their new numbers."""
        tokens, passages = zip(*texts, strict=True)
        for memory_id in memory_ids:
            self.remove(memory_id)
        first, last = len(self.ids), len(self.ids) + len(memory_ids)
        self._live, self._kind = with_capacity(self._live, last), with_capacity(self._kind, last)
        self._times = with_capacity(self._times, last)
        self.rows.update(zip(memory_ids, range(first, last), strict=True))
        self.ids += memory_ids
        self._live[first:last] = True
        self._kind[first:last] = [self._kinds.setdefault(kind, len(self._kinds)) for kind in kinds]
        self._times[first:last] = times
        new = slice(first, last)
        self._texts.put(new, tokens, passages)
        return new


class BoundaryVectors(TokenRows):
    def __init__(self, fingerprint: Fingerprint) -> None:
        super().__init__(fingerprint)
        self._pooled = np.zeros((INITIAL_ROWS, fingerprint.dim), np.float32)

    @property
    def size(self) -> int:
        return super().size + self._pooled.nbytes

    def put(self, rows: Sequence[PointRow]) -> None:
        """Add or replace points: at least one, each once."""
        ids, kinds, times = zip(*((row.memory_id, row.kind, row.occurred_ms) for row in rows), strict=True)
        new = self._add(ids, kinds, times, [(row.vectors.tokens, row.vectors.passages) for row in rows])
        self._pooled = with_capacity(self._pooled, new.stop)
        self._pooled[new] = [row.vectors.pooled for row in rows]

    def nearest(
        self, query: Vector, where: MemoryFilter, limit: int, memory_ids: Sequence[str] | None = None
    ) -> Nearest:
        """Return the nearest by the pooled vector in its length, best first, ties by id: of all memories, or these."""
        rows = self.admitted_rows(where, memory_ids)
        # Not a matrix product, which sums the last rows in another order than the others.
        cosines = np.einsum("ij,j->i", self._pooled[: len(self.ids)], precise_unit_vector(query))
        return best_of(self.ids, rows, np.clip(cosines[rows], -1.0, 1.0).astype(np.float64), limit)

    def best_texts(
        self, question: TextQuestion, where: MemoryFilter, limit: int, memory_ids: Sequence[str] | None
    ) -> Nearest:
        """Return the best by their best text: of all memories, or of these."""
        rows = self.admitted_rows(where, memory_ids)
        scored = self._texts.scores(rows, question).at(rows)
        return best_of(self.ids, scored.rows, scored.scores, limit, scored.passages)
