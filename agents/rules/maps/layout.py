"""Lay out vectors in a plane by their neighbour graph: near in meaning, near on the map. Pure.

Enters: rows of length 1, and places to start from. Leaves: places in the square. Guaranteed: deterministic, the same
bytes twice on one machine; time linear in the edges, after neighbours in the square of the rows.

The objective is that of UMAP (McInnes, Healy and Melville, 2018): edges pull, random pairs push. An epoch draws each
edge with its weight as probability, and moves all points at once.
"""

import numpy as np
from numpy.typing import NDArray

from agents.rules.maps.knn_graph import MIN_GRAPH_ROWS, Edges, neighbour_graph
from agents.rules.maps.places import Places, align, scale_to_square
from agents.rules.maps.principal_components import PrincipalPlane
from agents.rules.maps.stopping import StopCondition, never, stop_if
from schemas.models.vectors import Matrix

EPOCHS, REFIT_EPOCHS = 200, 60
"""Of a new layout, and of one that starts from an old one."""

NEGATIVES = 5
"""Random points that push the head of each drawn edge."""

SPREAD = np.float32(10)
"""Half the width of the plane in which the forces act: as in UMAP."""

CURVE_A, CURVE_B = np.float32(1.577), np.float32(0.895)
"""1 / (1 + a d^2b) is the similarity at a distance d; fitted to a minimum distance of 0.1 (UMAP's default)."""

MAX_PULL = np.float32(4)
"""Of one pair along one axis: as in UMAP."""

MAX_STEP = np.float32(1)
"""Of a point along one axis in one epoch: all pairs of a point act at once, and many would throw it across."""

SEED = 20240229
"""Of the draws."""


def lay_out(rows: Matrix, start: Places | None = None, should_stop: StopCondition = never) -> Places:
    """Return the places of rows; from principal components, or from `start`, which has a place for each row."""
    begin = PrincipalPlane.of(rows).project(rows) if start is None and len(rows) else start
    if begin is None or len(rows) < MIN_GRAPH_ROWS:
        return np.zeros((len(rows), 2), np.float32) if begin is None else begin
    edges = neighbour_graph(rows, should_stop)
    moved = _optimise(begin * SPREAD, edges, EPOCHS if start is None else REFIT_EPOCHS, should_stop)
    return scale_to_square(moved) if start is None else moved


def lay_out_again(
    rows: Matrix, start: Places, old_rows: NDArray[np.int64], should_stop: StopCondition = never
) -> Places:
    """Return new places that start from old ones and are aligned with those of `old_rows`."""
    return align(lay_out(rows, start, should_stop), old_rows, start[old_rows])


def _optimise(places: Places, edges: Edges, epochs: int, should_stop: StopCondition) -> Places:
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
    return places


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
    """Return the sum of the values of each row, shape (size, 2)."""
    axes = [np.bincount(rows, values[:, axis], size) for axis in (0, 1)]
    return np.stack(axes, axis=1).astype(np.float32)
