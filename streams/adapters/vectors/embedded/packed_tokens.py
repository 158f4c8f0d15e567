"""Packed rows of one boundary without the pooled vectors of whole texts: tokens and passages, as columns."""

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from schemas.models.vectors import MemoryFilter, PassageVectors
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.embedded.packed_rows import FilterFields, PackedTokens, RowStart
from streams.adapters.vectors.embedded.row_table import ROW_BYTES, RowTable
from streams.adapters.vectors.embedded.scoring import RowNumbers
from streams.adapters.vectors.embedded.text_columns import TextColumns, TextQuestion, TextScores


class TokenRows:
    """Some rows of a boundary, of a space that has token vectors or passages."""

    def __init__(self, fingerprint: Fingerprint) -> None:
        self._fingerprint = fingerprint
        self._table = RowTable()
        self._texts = TextColumns(fingerprint)

    @property
    def rows(self) -> Mapping[str, int]:
        """The row of each memory."""
        return self._table.rows

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        return self._texts.nbytes + ROW_BYTES * len(self._table.ids)

    @property
    def needs_compaction(self) -> bool:
        """True if more than half of the rows are dead."""
        return self._table.needs_compaction

    def put(self, packed: Mapping[str, bytes]) -> None:
        """Add packed rows by memory."""
        if not packed:
            return
        starts = [RowStart.of(row) for row in packed.values()]
        kinds, times = [start.kind for start in starts], [start.occurred_ms for start in starts]
        texts = [start.texts(self._fingerprint, row) for start, row in zip(starts, packed.values(), strict=True)]
        self.add(list(packed), kinds, times, texts)

    def add(
        self,
        memory_ids: Sequence[str],
        kinds: Sequence[FilterFields],
        times: Sequence[int],
        texts: Sequence[tuple[PackedTokens, PassageVectors | None]],
    ) -> None:
        """Add rows, at least one, with their token vectors and passages."""
        tokens, passages = zip(*texts, strict=True)
        self._texts.put(self._table.add(memory_ids, kinds, times), tokens, passages)

    def remove(self, memory_id: str) -> None:
        """Remove a row; unknown ids are ignored."""
        self._table.remove(memory_id)

    def newer_half(self) -> Self:
        """Return the rows that were added last, half of them."""
        made = type(self)(self._fingerprint)
        # In order of their rows.
        rows = list(self._table.rows.values())[len(self._table.rows) // 2 :]
        if rows:
            made.add(*self._table.fields(rows), [self._texts.of(row) for row in rows])
        return made

    def rows_of(self, memory_ids: Sequence[str]) -> RowNumbers:
        """Return the row of each of these memories, `NO_ROW` for an unknown one."""
        return self._table.rows_of(memory_ids)

    def scores(self, question: TextQuestion, where: MemoryFilter, rows: RowNumbers) -> TextScores:
        """Return scores of those of these rows that the filter admits, by their places in the given ones."""
        places = np.flatnonzero(self._table.admitted_mask(where, rows))
        return self._texts.scores(rows[places], question).at(places)
