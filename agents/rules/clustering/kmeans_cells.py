"""Partition vectors into overlapping cells of bounded size, so that all-pairs comparison stays within a cell. Pure.

Centres come from recursive bisecting spherical k-means (Steinbach, Karypis and Kumar, "A Comparison of Document
Clustering Techniques", 2000), initialised along the principal direction (Boley, "Principal Direction Divisive
Partitioning", 1998), so the cells are deterministic. Every vector is in the cells of its two nearest centres, like
probing an inverted file: near vectors nearly always share a cell. An unbalanced cut is replaced by one at the median:
the depth is that of a balanced tree, and the time n log n.
"""

import numpy as np
from numpy.typing import NDArray

from schemas.models.vectors import Matrix, Vector

RowIndices = NDArray[np.int64]
"""Row indexes of a matrix, ascending."""

SideMask = NDArray[np.bool_]

MAX_VECTORS_PER_CENTRE = 256
"""Vectors per centre: with two cells per vector a cell has about 500, and its cosines take a megabyte and some
milliseconds."""

MAX_CELL_SIZE = 1024
"""Vectors per cell: a larger one, as of equal vectors, is split in order."""

CELLS_PER_VECTOR = 2

KMEANS_ITERATIONS = 4
"""For k-means of one cut, and for the principal direction: few vectors change sides after that."""

CUT_SAMPLE_SIZE = 512
"""Vectors to find the cut with: of more, every n-th."""

MIN_SIDE_SHARE = 1 / 8
"""Minimum share of a side: below, an outlier was cut off, and the depth would grow with the number of outliers."""


def build_cells(vectors: Matrix) -> list[RowIndices]:
    """Return overlapping cells of row indexes of a matrix (rows, dim) of unit vectors."""
    if len(vectors) <= MAX_CELL_SIZE:
        return [np.arange(len(vectors))] if len(vectors) else []
    centres = np.stack([_centre(vectors[rows]) for rows in _bisect(vectors)])
    nearest = np.argpartition(-(vectors @ centres.T), CELLS_PER_VECTOR, axis=1)[:, :CELLS_PER_VECTOR]
    owners, rows = nearest.ravel(), np.repeat(np.arange(len(vectors)), CELLS_PER_VECTOR)
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(1, len(centres)))
    cells = np.split(rows[order], bounds)
    return [cell[start : start + MAX_CELL_SIZE] for cell in cells for start in range(0, len(cell), MAX_CELL_SIZE)]


def _bisect(vectors: Matrix) -> list[RowIndices]:
    """Split the rows into parts of at most `MAX_VECTORS_PER_CENTRE`."""
    pending, parts = [np.arange(len(vectors))], []
    while pending:
        rows = pending.pop()
        if len(rows) <= MAX_VECTORS_PER_CENTRE:
            parts.append(rows)
        else:
            is_right = _right_side(vectors[rows])
            pending += [rows[is_right], rows[~is_right]]
    return parts


def _right_side(vectors: Matrix) -> SideMask:
    """Return the rows on one side of the cut."""
    projection = vectors @ _cut_direction(vectors[:: -(-len(vectors) // CUT_SAMPLE_SIZE)])
    is_right: SideMask = projection > 0
    if MIN_SIDE_SHARE <= is_right.mean() <= 1 - MIN_SIDE_SHARE:
        return is_right
    is_upper_half = np.zeros(len(vectors), np.bool_)
    is_upper_half[np.argsort(projection, kind="stable")[len(vectors) // 2 :]] = True
    return is_upper_half


def _cut_direction(vectors: Matrix) -> Vector:
    """Return the difference of two centres, found by k-means from both sides of the principal direction."""
    centred = vectors - vectors.mean(axis=0)
    direction: Vector = centred[np.argmax(np.einsum("ij,ij->i", centred, centred))]
    for _ in range(KMEANS_ITERATIONS):
        direction = _unit_vector(((centred @ direction) @ centred).astype(np.float32))
    is_right: SideMask = centred @ direction > 0
    for _ in range(KMEANS_ITERATIONS):
        if not is_right.any() or is_right.all():
            break
        direction = _centre(vectors[is_right]) - _centre(vectors[~is_right])
        is_right = vectors @ direction > 0
    return direction


def _centre(vectors: Matrix) -> Vector:
    return _unit_vector(vectors.sum(axis=0, dtype=np.float32))


def _unit_vector(vector: Vector) -> Vector:
    length = np.float32(np.linalg.norm(vector))
    unit: Vector = vector / length if length else vector
    return unit
