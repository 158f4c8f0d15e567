"""Exact nearest neighbours in blocks, and the weighted graph of a layout. Pure.

Enters: rows of length 1. Leaves: the nearest rows with their cosines, or the edges of a fuzzy simplicial set (McInnes,
Healy and Melville, "UMAP: Uniform Manifold Approximation and Projection", 2018): each row's distances are scaled so
that it has about as much neighbourhood as every other. Guaranteed: memory is bounded by a block of rows, not by their
square; deterministic, ties by row.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.rules.clustering.kmeans_cells import RowIndices
from agents.rules.maps.stopping import StopCondition, never, stop_if
from schemas.models.vectors import Matrix, Vector

BLOCK_ROWS = 128
"""Rows that are compared with all others at once: 30 MB with 20,000 others."""

MAX_GRAPH_NEIGHBOURS = 15
"""Neighbours of a row in the graph, as in UMAP; of fewer than 30 rows half of them, else all would be neighbours."""

MIN_GRAPH_ROWS = 3
"""Rows of which a graph can be made."""

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
    found = np.zeros((len(rows), count), np.int64)
    cosines = np.zeros((len(rows), count), np.float32)
    for start in range(0, len(rows), BLOCK_ROWS):
        stop_if(should_stop)
        block = rows[start : start + BLOCK_ROWS] @ among.T
        best = np.argpartition(-block, count - 1, axis=1)[:, :count]
        values = np.take_along_axis(block, best, axis=1)
        order = np.lexsort((best, -values), axis=1)
        found[start : start + len(block)] = np.take_along_axis(best, order, axis=1)
        cosines[start : start + len(block)] = np.take_along_axis(values, order, axis=1)
    return Nearest(found, cosines)


def neighbour_graph(rows: Matrix, should_stop: StopCondition = never) -> Edges:
    """Return the edges between rows, at least `MIN_GRAPH_ROWS`, and their nearest."""
    count = min(MAX_GRAPH_NEIGHBOURS, max(2, len(rows) // 2))
    nearest = nearest_rows(rows, rows, count + 1, should_stop)
    # Of equal rows any may come first, so that a row is not always its own nearest.
    is_other = nearest.rows != np.arange(len(rows))[:, None]
    is_other &= is_other.cumsum(axis=1) <= count
    others = nearest.rows[is_other].reshape(len(rows), count)
    distances = np.maximum(0, 1 - nearest.cosines[is_other].reshape(len(rows), count))
    return _symmetric(others, _membership(distances))


def _membership(distances: Matrix) -> Matrix:
    """Return the weight of each neighbour: 1 for the nearest, and log2 of their number in all."""
    beyond = np.maximum(0, distances - distances[:, :1])
    wanted = np.log2(distances.shape[1])
    low, high = np.zeros(len(distances)), np.full(len(distances), 2.0)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        is_wide = np.exp(-beyond / np.maximum(middle, 1e-9)[:, None]).sum(axis=1) > wanted
        low, high = np.where(is_wide, low, middle), np.where(is_wide, middle, high)
    return np.asarray(np.exp(-beyond / np.maximum(high, 1e-9)[:, None]), np.float32)


def _symmetric(others: NDArray[np.int64], weights: Matrix) -> Edges:
    """Return a + b - ab of the weights in both directions, as the union of two fuzzy sets."""
    size = len(others)
    heads, tails, each = np.repeat(np.arange(size), others.shape[1]), others.ravel(), weights.ravel()
    keys, place = np.unique(np.concatenate((heads * size + tails, tails * size + heads)), return_inverse=True)
    doubled = np.concatenate((each, each)).astype(np.float64)
    sums, squares = np.bincount(place, doubled), np.bincount(place, np.square(doubled))
    union = sums - (np.square(sums) - squares) / 2
    return Edges(keys // size, keys % size, np.asarray(union, np.float32))
