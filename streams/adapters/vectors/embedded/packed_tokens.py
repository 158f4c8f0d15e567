"""Packed rows of one boundary without their pooled vectors: what late interaction needs, as columns."""

from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np

from schemas.models.vectors import MemoryFilter
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.embedded.packed_rows import FilterFields, PackedTokens, RowStart
from streams.adapters.vectors.embedded.row_table import ROW_BYTES, RowTable
from streams.adapters.vectors.embedded.scoring import Mask, QuestionSteps, RowNumbers, ScoreArray
from streams.adapters.vectors.embedded.token_columns import TokenColumns


class TokenRows:
    """Some rows of a boundary, of a space that has token vectors."""

    def __init__(self, fingerprint: Fingerprint) -> None:
        self._fingerprint = fingerprint
        self._table = RowTable()
        self._tokens = TokenColumns(fingerprint.token_dim)

    @property
    def rows(self) -> Mapping[str, int]:
        """The row of each memory."""
        return self._table.rows

    @property
    def size(self) -> int:
        """The approximate number of bytes."""
        return self._tokens.nbytes + ROW_BYTES * len(self._table.ids)

    @property
    def needs_compaction(self) -> bool:
        """True if more than half of the rows are dead."""
        return self._table.needs_compaction

    def put(self, packed: Mapping[str, bytes]) -> None:
        """Add packed rows by memory."""
        if not packed:
            return
        kinds, times, tokens = [], [], []
        for row in packed.values():
            start = RowStart.of(row)
            kinds.append(start.kind)
            times.append(start.occurred_ms)
            found = np.frombuffer(row, np.int8, offset=start.tokens_at(self._fingerprint.dim))
            tokens.append(found.reshape(-1, self._fingerprint.token_dim))
        self.add(list(packed), kinds, times, tokens)

    def add(
        self,
        memory_ids: Sequence[str],
        kinds: Sequence[FilterFields],
        times: Sequence[int],
        tokens: Sequence[PackedTokens],
    ) -> None:
        """Add rows, at least one."""
        self._tokens.put(self._table.add(memory_ids, kinds, times), tokens)

    def remove(self, memory_id: str) -> None:
        """Remove a row; unknown ids are ignored."""
        self._table.remove(memory_id)

    def newer_half(self) -> Self:
        """Return the rows that were added last, half of them."""
        made = type(self)(self._fingerprint)
        # In order of their rows.
        rows = list(self._table.rows.values())[len(self._table.rows) // 2 :]
        if rows:
            made.add(*self._table.fields(rows), [self._tokens.of(row) for row in rows])
        return made

    def rows_of(self, memory_ids: Sequence[str]) -> RowNumbers:
        """Return the row of each of these memories, `NO_ROW` for an unknown one."""
        return self._table.rows_of(memory_ids)

    def scores(self, steps: QuestionSteps, where: MemoryFilter, rows: RowNumbers) -> tuple[Mask, ScoreArray]:
        """Return which of these rows the filter admits and have token vectors; the MaxSim of those."""
        mask: Mask = self._table.admitted_mask(where, rows) & self._tokens.has_tokens(rows)
        return mask, self._tokens.maxsim(rows[mask], steps)
