"""Many vectors in overlapping cells of a bounded size, so that only within a cell each is compared with each. Pure.

Centres come from recursive bisecting spherical k-means (Steinbach, Karypis and Kumar, "A Comparison of Document
Clustering Techniques", 2000), begun along the principal direction instead of at random (Boley, "Principal Direction
Divisive Partitioning", 1998), so that the same vectors always give the same cells. Every vector is in the cells of its
two nearest centres, as an inverted file is probed: two that are near share one of them nearly always. A cut that leaves
one side small is made at the median instead: the depth is that of a balanced tree, and the time n log n.
"""

import numpy as np
from numpy.typing import NDArray

from schemas.vectors import Matrix, Vector

RowIndices = NDArray[np.int64]
"""Rows of a matrix by their places, ascending."""

SideMask = NDArray[np.bool_]

MAX_VECTORS_PER_CENTRE = 256
"""Vectors that a centre is made of: with two cells for each vector a cell has some 500, all of whose cosines are a
megabyte, and made in some milliseconds."""

MAX_CELL_SIZE = 1024
"""Vectors of a cell: where more are nearest to one centre, as equal ones are, they are taken in turns."""

CELLS_PER_VECTOR = 2
"""Of each vector."""

KMEANS_ITERATIONS = 4
"""Of k-means for one cut, and of the search for the principal direction: few vectors change sides after that."""

CUT_SAMPLE_SIZE = 512
"""Vectors by which a cut is found: of more, every so many of them."""

MIN_SIDE_SHARE = 1 / 8
"""Of a cut, as a share: below it an outlier was cut off, and the depth would grow with the number of outliers."""


def build_cells(vectors: Matrix) -> list[RowIndices]:
    """The places of the rows of a matrix (rows, dim), each of length 1, in cells that overlap."""
    if len(vectors) <= MAX_CELL_SIZE:
        return [np.arange(len(vectors))] if len(vectors) else []
    centres = np.stack([_centre(vectors[places]) for places in _parts(vectors)])
    nearest = np.argpartition(-(vectors @ centres.T), CELLS_PER_VECTOR, axis=1)[:, :CELLS_PER_VECTOR]
    owners, places = nearest.ravel(), np.repeat(np.arange(len(vectors)), CELLS_PER_VECTOR)
    order = np.argsort(owners, kind="stable")
    bounds = np.searchsorted(owners[order], np.arange(1, len(centres)))
    found = np.split(places[order], bounds)
    return [cell[start : start + MAX_CELL_SIZE] for cell in found for start in range(0, len(cell), MAX_CELL_SIZE)]


def _parts(vectors: Matrix) -> list[RowIndices]:
    """The rows in parts of at most `MAX_VECTORS_PER_CENTRE`."""
    waiting, done = [np.arange(len(vectors))], []
    while waiting:
        places = waiting.pop()
        if len(places) <= MAX_VECTORS_PER_CENTRE:
            done.append(places)
        else:
            right = _right_side(vectors[places])
            waiting += [places[right], places[~right]]
    return done


def _right_side(vectors: Matrix) -> SideMask:
    """Which rows are on one side of the cut."""
    leaning = vectors @ _direction(vectors[:: -(-len(vectors) // CUT_SAMPLE_SIZE)])
    right: SideMask = leaning > 0
    if MIN_SIDE_SHARE <= right.mean() <= 1 - MIN_SIDE_SHARE:
        return right
    halves = np.zeros(len(vectors), np.bool_)
    halves[np.argsort(leaning, kind="stable")[len(vectors) // 2 :]] = True
    return halves


def _direction(vectors: Matrix) -> Vector:
    """From one of two centres to the other, which k-means finds from both sides of the principal direction."""
    centred = vectors - vectors.mean(axis=0)
    direction: Vector = centred[np.argmax(np.einsum("ij,ij->i", centred, centred))]
    for _ in range(KMEANS_ITERATIONS):
        direction = _of_length_one(((centred @ direction) @ centred).astype(np.float32))
    right: SideMask = centred @ direction > 0
    for _ in range(KMEANS_ITERATIONS):
        if not right.any() or right.all():
            break
        direction = _centre(vectors[right]) - _centre(vectors[~right])
        right = vectors @ direction > 0
    return direction


def _centre(vectors: Matrix) -> Vector:
    """The mean direction."""
    return _of_length_one(vectors.sum(axis=0, dtype=np.float32))


def _of_length_one(vector: Vector) -> Vector:
    length = np.float32(np.linalg.norm(vector))
    unit: Vector = vector / length if length else vector
    return unit
