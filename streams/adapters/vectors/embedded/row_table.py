"""Rows of the memories of one boundary, in order of arrival: ids, and what filters check.

A replaced or removed row stays behind, dead. Vectors are columns beside these, of the same rows.
"""

from collections.abc import Sequence
from itertools import repeat
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from schemas.models.vectors import MemoryFilter
from streams.adapters.vectors.embedded.packed_rows import FilterFields
from streams.adapters.vectors.embedded.scoring import Mask, RowNumbers, time_mask

INITIAL_ROWS = 4
"""The capacity before it grows. Many users have few memories: with one, 64 rows take 108 KB, 4 take 8."""

MAX_ROWS_DOUBLED = 4096
"""A larger capacity grows by an eighth."""

MAX_DEAD_ROWS = 64
"""Dead rows that are tolerated in addition to one for each live row."""

ROW_BYTES = 300
"""Of one row, about: its id, and the objects around it."""

NO_ROW = -1

_Number = TypeVar("_Number", bound=np.generic)


class RowTable:
    """The rows of one boundary."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        """The row of each memory."""
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

    def add(self, memory_ids: Sequence[str], kinds: Sequence[FilterFields], times: Sequence[int]) -> slice:
        """Add or replace memories, each once; return their new rows."""
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
        return slice(first, last)

    def remove(self, memory_id: str) -> None:
        """Remove a memory; unknown ids are ignored."""
        row = self.rows.pop(memory_id, None)
        if row is not None:
            self._live[row] = False

    def fields(self, rows: Sequence[int]) -> tuple[list[str], list[FilterFields], list[int]]:
        """Return ids, filter fields and times of these rows, as `add` takes them."""
        kinds = list(self._kinds)
        return (
            [self.ids[row] for row in rows],
            [kinds[place] for place in self._kind[rows].tolist()],
            self._times[rows].tolist(),
        )

    def admitted_rows(self, where: MemoryFilter) -> RowNumbers:
        """Return the rows that a filter admits."""
        rows = np.flatnonzero(self._live[: len(self.ids)])
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


def with_capacity(column: NDArray[_Number], rows: int) -> NDArray[_Number]:
    """Return the column, or one with at least as many rows; what is new takes no memory before it is written to."""
    if rows <= len(column):
        return column
    larger = len(column) + max(len(column) // 8, min(len(column), MAX_ROWS_DOUBLED))
    longer = np.zeros((max(rows, larger), *column.shape[1:]), column.dtype)
    longer[: len(column)] = column
    return longer
