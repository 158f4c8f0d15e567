"""Lay out vectors in a plane by their neighbour graph: similar rows are close together. Pure.

Enters: rows of length 1, and places to start from. Leaves: places in the square, both coordinates in -1..1. Guaranteed:
deterministic, the same bytes twice on one machine; time linear in the edges, plus neighbours in quadratic time of the
rows; memory bounded by a block of rows. Long work can be stopped between two of its pieces.

Edges are those of a fuzzy simplicial set (McInnes, Healy and Melville, "UMAP: Uniform Manifold Approximation and
Projection", 2018): each row's distances are scaled so that it has about as much neighbourhood as every other. The
objective is UMAP's too: edges pull, random pairs push. An epoch draws each edge with its weight as probability, and
moves all points at once. A map starts from the plane of the two principal components.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from agents.rules.clustering.clustering import RowIndices
from agents.rules.index.columns import MISSING, ColumnArrays, IntArray, Mask
from schemas.models.vectors import Matrix, Vector

StopCondition = Callable[[], bool]
"""True to stop the work."""


class Stopped(Exception):
    """Raised by stopped work."""


def never() -> bool:
    return False


def stop_if(should_stop: StopCondition) -> None:
    """Raise Stopped if the work is to stop."""
    if should_stop():
        raise Stopped


Places = NDArray[np.float32]
"""Shape (points, 2), finite."""

FILLED_SHARE = 0.95
"""Share of the square that a new map fills: later points have room at its edge."""


def scale_to_square(places: Places) -> Places:
    """Centre places, and scale them so that the outermost fills the share of the square."""
    if not len(places):
        return places
    centred = places - (places.max(axis=0) + places.min(axis=0)) / 2
    extent = float(np.abs(centred).max()) or 1.0
    return np.asarray(centred * (FILLED_SHARE / extent), np.float32)


def clip_to_square(places: Places) -> Places:
    """Return places with coordinates beyond the square on its edge."""
    return np.clip(places, -1, 1)


def align(places: Places, old_rows: NDArray[np.int64], old: Places) -> Places:
    """Move, turn, mirror and scale a map as a whole, so that some of its points lie nearest to their old places.

    `old` has the old places of the points `old_rows`. Procrustes analysis (Gower, "Generalized Procrustes analysis",
    1975). A map that is then larger than the square is made smaller.
    """
    ours = places[old_rows]
    centre, old_centre = ours.mean(axis=0), old.mean(axis=0)
    left, strengths, right = np.linalg.svd((ours - centre).T @ (old - old_centre))
    spread = float(np.square(ours - centre).sum())
    scale = float(strengths.sum()) / spread if spread else 1.0
    moved = (places - centre) @ (left @ right) * scale + old_centre
    return np.asarray(moved / max(1.0, float(np.abs(moved).max())), np.float32)


BLOCK_ROWS = 128
"""Rows compared with all others at once: 30 MB with 20,000 others."""

MAX_GRAPH_NEIGHBOURS = 15
"""Neighbours of a row in the graph, as in UMAP; of fewer than 30 rows half of them, else all would be neighbours."""

MIN_GRAPH_ROWS = 3

BISECTIONS = 32
"""Steps to find the scale of a row's distances: exact to the last digit of 32-bit floats."""


class Nearest(NamedTuple):
    """Nearest rows and their cosines, the nearest first, both of shape (rows, neighbours)."""

    rows: NDArray[np.int64]
    cosines: Matrix


class Edges(NamedTuple):
    """Edges of a graph in both directions; `weights` are in 0..1."""

    heads: RowIndices
    tails: RowIndices
    weights: Vector


def nearest_rows(rows: Matrix, among: Matrix, count: int, should_stop: StopCondition = never) -> Nearest:
    """Return the `count` nearest of `among` for each row. `among` has at least that many."""
    nearest = np.zeros((len(rows), count), np.int64)
    cosines = np.zeros((len(rows), count), np.float32)
    for start in range(0, len(rows), BLOCK_ROWS):
        stop_if(should_stop)
        block = rows[start : start + BLOCK_ROWS] @ among.T
        best = np.argpartition(-block, count - 1, axis=1)[:, :count]
        values = np.take_along_axis(block, best, axis=1)
        order = np.lexsort((best, -values), axis=1)
        nearest[start : start + len(block)] = np.take_along_axis(best, order, axis=1)
        cosines[start : start + len(block)] = np.take_along_axis(values, order, axis=1)
    return Nearest(nearest, cosines)


def neighbour_graph(rows: Matrix, should_stop: StopCondition = never) -> Edges:
    """Return the edges between rows, at least `MIN_GRAPH_ROWS`, and their nearest."""
    count = min(MAX_GRAPH_NEIGHBOURS, max(2, len(rows) // 2))
    nearest = nearest_rows(rows, rows, count + 1, should_stop)
    # Of equal rows any may come first, so that a row is not always its own nearest.
    is_other = nearest.rows != np.arange(len(rows))[:, None]
    is_other &= is_other.cumsum(axis=1) <= count
    others = nearest.rows[is_other].reshape(len(rows), count)
    distances = np.maximum(0, 1 - nearest.cosines[is_other].reshape(len(rows), count))
    # The weight of each neighbour: 1 for the nearest, and log2 of their number in all.
    beyond = np.maximum(0, distances - distances[:, :1])
    wanted = np.log2(distances.shape[1])
    low, high = np.zeros(len(distances)), np.full(len(distances), 2.0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        is_wide = np.exp(-beyond / np.maximum(middle, 1e-9)[:, None]).sum(axis=1) > wanted
        low, high = np.where(is_wide, low, middle), np.where(is_wide, middle, high)
    weights = np.asarray(np.exp(-beyond / np.maximum(high, 1e-9)[:, None]), np.float32)
    # a + b - ab of the weights in both directions: the union of two fuzzy sets.
    size = len(others)
    heads, tails, each = np.repeat(np.arange(size), others.shape[1]), others.ravel(), weights.ravel()
    keys, edge = np.unique(np.concatenate((heads * size + tails, tails * size + heads)), return_inverse=True)
    doubled = np.concatenate((each, each)).astype(np.float64)
    sums, squares = np.bincount(edge, doubled), np.bincount(edge, np.square(doubled))
    union = sums - (np.square(sums) - squares) / 2
    return Edges(keys // size, keys % size, np.asarray(union, np.float32))


MAX_FITTED_ROWS = 4096
"""Vectors used to find the components, of more every n-th: a tenth of a second for 1,024 dimensions."""


TINY = 1e-9
"""Length up to which a direction is only rounding: equal vectors have none."""


@dataclass(frozen=True, slots=True)
class PrincipalPlane:
    """The plane of two components through the mean; `scale` makes it fill the square."""

    mean: Vector
    axes: Matrix
    scale: float

    @classmethod
    def of(cls, rows: Matrix) -> Self:
        """Fit the plane to vectors, at least one."""
        mean: Vector = rows.mean(axis=0)
        centred = rows[:: -(-len(rows) // MAX_FITTED_ROWS)] - mean
        # The two directions of largest variance; the largest entry of each is positive.
        axes, exact = np.zeros((centred.shape[1], 2), np.float32), np.asarray(centred, np.float64)
        is_wide = len(exact) < exact.shape[1]
        # Of fewer rows than columns the products of rows are the smaller problem, with the same variances.
        products = exact @ exact.T if is_wide else exact.T @ exact
        best = np.linalg.eigh(products)[1][:, ::-1][:, :2]
        unscaled = exact.T @ best if is_wide else best
        lengths = np.linalg.norm(unscaled, axis=0)
        directions = np.asarray(unscaled / np.where(lengths > TINY, lengths, np.inf), np.float64)
        signs = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])])
        axes[:, : directions.shape[1]] = directions * signs
        extent = float(np.abs((rows - mean) @ axes).max())
        return cls(mean, axes, FILLED_SHARE / extent if extent else 1.0)

    def project(self, rows: Matrix) -> Places:
        """Return the places of vectors; those beyond the square lie on its edge."""
        return clip_to_square(np.asarray((rows - self.mean) @ self.axes * np.float32(self.scale), np.float32))


EPOCHS, REFIT_EPOCHS = 200, 60
"""Epochs of a new layout, and of one that starts from an old one."""

NEGATIVES = 5
"""Random points that push the head of each drawn edge."""

SPREAD = np.float32(10)
"""Half the width of the plane in which the forces act: as in UMAP."""

CURVE_A, CURVE_B = np.float32(1.577), np.float32(0.895)
"""1 / (1 + a d^2b) is the similarity at a distance d; fitted to a minimum distance of 0.1 (UMAP's default)."""

MAX_PULL = np.float32(4)
"""Limit of one pair's force along one axis: as in UMAP."""

MAX_STEP = np.float32(1)
"""Limit of a point's move along one axis in one epoch: all its pairs act at once, and many would throw it across."""

SEED = 20240229
"""Of the draws."""


def lay_out(rows: Matrix, start: Places | None = None, should_stop: StopCondition = never) -> Places:
    """Return the places of rows; from principal components, or from `start`, which has a place for each row."""
    begin = PrincipalPlane.of(rows).project(rows) if start is None and len(rows) else start
    if begin is None or len(rows) < MIN_GRAPH_ROWS:
        return np.zeros((len(rows), 2), np.float32) if begin is None else begin
    edges = neighbour_graph(rows, should_stop)
    places, epochs = begin * SPREAD, EPOCHS if start is None else REFIT_EPOCHS
    draws = np.random.default_rng(SEED)
    likely = edges.weights / edges.weights.max()
    for epoch in range(epochs):
        stop_if(should_stop)
        is_drawn = draws.random(len(likely), np.float32) < likely
        heads, tails = edges.heads[is_drawn], edges.tails[is_drawn]
        pushed = np.repeat(heads, NEGATIVES)
        others = draws.integers(0, len(places), len(pushed))
        step = _pull(places, heads, tails) + _push(places, pushed, others)
        places = places + np.clip(step, -MAX_STEP, MAX_STEP) * np.float32(1 - epoch / epochs)
    return scale_to_square(places) if start is None else places


def lay_out_again(
    rows: Matrix, start: Places, old_rows: NDArray[np.int64], should_stop: StopCondition = never
) -> Places:
    """Return new places that start from old ones and are aligned with those of `old_rows`."""
    return align(lay_out(rows, start, should_stop), old_rows, start[old_rows])


def _pull(places: Places, heads: NDArray[np.int64], tails: NDArray[np.int64]) -> Places:
    apart = places[heads] - places[tails]
    squared = np.maximum(np.einsum("ij,ij->i", apart, apart), np.float32(1e-12))
    powered = CURVE_A * squared**CURVE_B
    force = -2 * CURVE_B * powered / (squared * (1 + powered))
    pulls = np.clip(apart * force[:, None], -MAX_PULL, MAX_PULL)
    return _sums(heads, pulls, len(places)) - _sums(tails, pulls, len(places))


def _push(places: Places, heads: NDArray[np.int64], others: NDArray[np.int64]) -> Places:
    apart = places[heads] - places[others]
    squared = np.einsum("ij,ij->i", apart, apart)
    force = 2 * CURVE_B / ((np.float32(0.001) + squared) * (1 + CURVE_A * squared**CURVE_B))
    return _sums(heads, np.clip(apart * force[:, None], -MAX_PULL, MAX_PULL), len(places))


def _sums(rows: NDArray[np.int64], values: Places, size: int) -> Places:
    axes = [np.bincount(rows, values[:, axis], size) for axis in (0, 1)]
    return np.stack(axes, axis=1).astype(np.float32)


MAX_LAID_OUT = 20_000
"""Maximum memories laid out; others are placed among them. Neighbours take quadratic time: a minute for these."""

REFIT_SHARE = 0.2
"""Share of new memories from which a map is laid out again."""

MAX_KEPT_POINTS = 100_000
"""Maximum points of a stored map, 3 MB: beyond it points that are only placed are recomputed for each request."""


@dataclass(frozen=True, slots=True)
class MapLayout:
    """Memories with their places, the laid out ones first.

    `laid_out` counts the memories that were laid out, `remaining` those of them that are still there; `total` was the
    size of the space then.
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
        return dict(zip(self.ids, range(len(self.ids)), strict=True))

    def only(self, is_kept: Mask) -> "MapLayout":
        """Return the map without some points; the others stay where they are."""
        if bool(is_kept.all()):
            return self
        ids = tuple(memory_id for memory_id, keep in zip(self.ids, is_kept.tolist(), strict=True) if keep)
        remaining = int(is_kept[: self.remaining].sum())
        return replace(self, ids=ids, places=self.places[is_kept], remaining=remaining)

    def without(self, memory_ids: Iterable[str]) -> "MapLayout":
        gone = frozenset(memory_ids)
        return self.only(np.array([memory_id not in gone for memory_id in self.ids], np.bool_))

    def extended(self, memory_ids: Sequence[str], places: Places) -> "MapLayout":
        return replace(self, ids=(*self.ids, *memory_ids), places=np.concatenate((self.places, places)))

    def trimmed(self) -> "MapLayout":
        """Return the map with its storable points."""
        if len(self.ids) <= MAX_KEPT_POINTS:
            return self
        points = max(MAX_KEPT_POINTS, self.remaining)
        return replace(self, ids=self.ids[:points], places=self.places[:points])

    def has_grown(self, total: int) -> bool:
        """True if enough of the space's present memories are new to lay it out again."""
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
    """Return a place for each row: the middle without laid out rows."""
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
