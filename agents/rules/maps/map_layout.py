"""A stored map of one vector space of a user: the places of its memories, and the choice of memories for it. Pure.

New vectors are placed at the mean of their nearest laid out rows, independently of others. The sample is deterministic:
every conversation has a memory in it as long as there is room; a later memory replaces one of its conversation or one
other at most.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from agents.rules.index.columns import MISSING, ColumnArrays, IntArray, Mask
from agents.rules.maps.layout import MIN_GRAPH_ROWS, Places, StopCondition, lay_out, lay_out_again, nearest_rows, never
from schemas.models.vectors import Matrix

MAX_LAID_OUT = 20_000
"""Memories that are laid out; others are placed among them. Neighbours take time in the square: a minute for these."""

REFIT_SHARE = 0.2
"""Share of new memories from which a map is laid out again."""

MAX_KEPT_POINTS = 100_000
"""Points of a kept map, 3 MB: beyond it those that are only placed are placed again when they are asked for."""


@dataclass(frozen=True, slots=True)
class MapLayout:
    """Memories with their places, the laid out ones first.

    `laid_out` counts the memories that were laid out, `remaining` those of them that are still there; `total` were in
    the space then.
    """

    ids: tuple[str, ...]
    places: Places
    laid_out: int
    remaining: int
    total: int
    made_at: datetime

    @classmethod
    def new(cls, ids: Sequence[str], places: Places, total: int, made_at: datetime) -> "MapLayout":
        """Return the map of memories that were laid out together, of so many in their space."""
        return cls(tuple(ids), places, len(ids), len(ids), total, made_at)

    def rows(self) -> Mapping[str, int]:
        """Return the rows of `places` by id."""
        return dict(zip(self.ids, range(len(self.ids)), strict=True))

    def only(self, is_kept: Mask) -> "MapLayout":
        """Return the map without some points; the others stay where they are."""
        if bool(is_kept.all()):
            return self
        ids = tuple(memory_id for memory_id, keep in zip(self.ids, is_kept.tolist(), strict=True) if keep)
        remaining = int(is_kept[: self.remaining].sum())
        return replace(self, ids=ids, places=self.places[is_kept], remaining=remaining)

    def without(self, memory_ids: Iterable[str]) -> "MapLayout":
        """Return the map without these memories."""
        gone = frozenset(memory_ids)
        return self.only(np.array([memory_id not in gone for memory_id in self.ids], np.bool_))

    def extended(self, memory_ids: Sequence[str], places: Places) -> "MapLayout":
        """Return the map with further memories at these places."""
        return replace(self, ids=(*self.ids, *memory_ids), places=np.concatenate((self.places, places)))

    def trimmed(self) -> "MapLayout":
        """Return the map with as many points as are kept."""
        if len(self.ids) <= MAX_KEPT_POINTS:
            return self
        points = max(MAX_KEPT_POINTS, self.remaining)
        return replace(self, ids=self.ids[:points], places=self.places[:points])

    def has_grown(self, total: int) -> bool:
        """True if so many of the memories that are in the space now are new that it is laid out again."""
        placed = self.total * self.remaining / max(1, self.laid_out)
        return self.remaining == 0 or total - placed >= REFIT_SHARE * total


def lay_out_from(old: MapLayout | None, ids: Sequence[str], rows: Matrix, should_stop: StopCondition = never) -> Places:
    """Return the places of memories with these rows of length 1; they start from their old ones."""
    old_rows = {} if old is None else old.rows()
    is_known = np.array([memory_id in old_rows for memory_id in ids], np.bool_)
    if old is None or is_known.sum() < MIN_GRAPH_ROWS:
        return lay_out(rows, should_stop=should_stop)
    start = np.zeros((len(rows), 2), np.float32)
    start[is_known] = old.places[[old_rows[memory_id] for memory_id in ids if memory_id in old_rows]]
    start[~is_known] = place_among(rows[~is_known], rows[is_known], start[is_known])
    return lay_out_again(rows, start, np.flatnonzero(is_known), should_stop)


PLACING_NEIGHBOURS = 5
"""Laid out neighbours whose mean place a new row gets."""


def place_among(rows: Matrix, laid_out: Matrix, places: Places) -> Places:
    """Return a place for each row. Without laid out rows it is the middle."""
    count = min(PLACING_NEIGHBOURS, len(laid_out))
    if not count or not len(rows):
        return np.zeros((len(rows), 2), np.float32)
    return np.asarray(places[nearest_rows(rows, laid_out, count).rows].mean(axis=1), np.float32)


MIX_SHIFTS = (30, 27, 31)
MIX_FACTORS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
"""Of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014)."""


def sample_memories(columns: ColumnArrays, numbers: IntArray, limit: int) -> IntArray:
    """Return at most `limit` of these numbers, ascending."""
    if len(numbers) <= limit:
        return numbers
    # A pseudorandom rank by time and the offset of the turn, which a rebuild keeps.
    mixed = columns.occurred_ms[numbers].astype(np.uint64) * np.uint64(2**32 + 1) + columns.source[numbers].astype(
        np.uint64
    )
    for shift, factor in zip(MIX_SHIFTS, (*MIX_FACTORS, 1), strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    ranked = numbers[np.lexsort((numbers, mixed))]
    of_conversation = columns.conversations[ranked]
    is_first = np.zeros(len(ranked), np.bool_)
    is_first[np.unique(of_conversation, return_index=True)[1]] = True
    # Distilled memories belong to no conversation.
    is_first &= of_conversation != MISSING
    chosen = np.concatenate((ranked[is_first], ranked[~is_first]))[:limit]
    return np.sort(chosen)
