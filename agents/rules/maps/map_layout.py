"""A kept map of one vector space of a user: the places of its memories. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from agents.rules.index.columns import Mask
from agents.rules.maps.knn_graph import MIN_GRAPH_ROWS
from agents.rules.maps.layout import lay_out, lay_out_again
from agents.rules.maps.placement import place_among
from agents.rules.maps.places import Places
from agents.rules.maps.stopping import StopCondition, never
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
        ids = tuple(one for one, keep in zip(self.ids, is_kept.tolist(), strict=True) if keep)
        remaining = int(is_kept[: self.remaining].sum())
        return replace(self, ids=ids, places=self.places[is_kept], remaining=remaining)

    def without(self, memory_ids: Iterable[str]) -> "MapLayout":
        """Return the map without these memories."""
        gone = frozenset(memory_ids)
        return self.only(np.array([one not in gone for one in self.ids], np.bool_))

    def extended(self, memory_ids: Sequence[str], places: Places) -> "MapLayout":
        """Return the map with further memories at these places."""
        return replace(self, ids=(*self.ids, *memory_ids), places=np.concatenate((self.places, places)))

    def trimmed(self) -> "MapLayout":
        """Return the map with as many points as are kept."""
        if len(self.ids) <= MAX_KEPT_POINTS:
            return self
        kept = max(MAX_KEPT_POINTS, self.remaining)
        return replace(self, ids=self.ids[:kept], places=self.places[:kept])

    def has_grown(self, total: int) -> bool:
        """True if so many of the memories that are in the space now are new that it is laid out again."""
        known = self.total * self.remaining / max(1, self.laid_out)
        return self.remaining == 0 or total - known >= REFIT_SHARE * total


def lay_out_from(old: MapLayout | None, ids: Sequence[str], rows: Matrix, should_stop: StopCondition = never) -> Places:
    """Return the places of memories with these rows of length 1; they start from their old ones."""
    known = {} if old is None else old.rows()
    is_known = np.array([one in known for one in ids], np.bool_)
    if old is None or is_known.sum() < MIN_GRAPH_ROWS:
        return lay_out(rows, should_stop=should_stop)
    start = np.zeros((len(rows), 2), np.float32)
    start[is_known] = old.places[[known[one] for one in ids if one in known]]
    start[~is_known] = place_among(rows[~is_known], rows[is_known], start[is_known])
    return lay_out_again(rows, start, np.flatnonzero(is_known), should_stop)
