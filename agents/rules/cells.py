"""Many vectors cut into cells of a bounded size, so that only within a cell each is compared with each. Pure.

Recursive bisecting spherical k-means (Steinbach, Karypis and Kumar, "A Comparison of Document Clustering Techniques",
2000), begun along the principal direction instead of at random (Boley, "Principal Direction Divisive Partitioning",
1998), so that the same vectors always give the same cells. A cut that leaves one side small is made at the median
instead: the depth is that of a balanced tree, and the time n log n.
"""

import numpy as np
from numpy.typing import NDArray

from schemas.vectors import Matrix, Vector

Places = NDArray[np.int64]
"""Rows of a matrix by their places, ascending."""

Sides = NDArray[np.bool_]

MOST_IN_CELL = 512
"""Vectors of a cell: all their cosines are a megabyte, and made in some milliseconds."""

ROUNDS = 6
"""Of k-means for one cut, and of the search for the principal direction: few vectors change sides after that."""

SMALLEST_SIDE = 1 / 8
"""Of a cut, as a share: below it an outlier was cut off, and the depth would grow with the number of outliers."""


def cells(vectors: Matrix, most: int = MOST_IN_CELL) -> list[Places]:
    """The places of the rows of a matrix (rows, dim), each of length 1, in cells of at most `most`."""
    waiting, done = [np.arange(len(vectors))], []
    while waiting:
        places = waiting.pop()
        if len(places) <= most:
            done.append(places)
        else:
            right = _right_side(vectors[places])
            waiting += [places[right], places[~right]]
    return [cell for cell in done if len(cell)]


def _right_side(vectors: Matrix) -> Sides:
    """Which rows are on one side of the cut."""
    centred = vectors - vectors.mean(axis=0)
    leaning = centred @ _principal_direction(centred)
    right: Sides = leaning > 0
    for _ in range(ROUNDS):
        if not right.any() or right.all():
            break
        leaning = vectors @ (_centre(vectors[right]) - _centre(vectors[~right]))
        right = leaning > 0
    if SMALLEST_SIDE <= right.mean() <= 1 - SMALLEST_SIDE:
        return right
    halves = np.zeros(len(vectors), np.bool_)
    halves[np.argsort(leaning, kind="stable")[len(vectors) // 2 :]] = True
    return halves


def _principal_direction(centred: Matrix) -> Vector:
    """The direction in which the rows differ most, by power iteration; none where they do not differ."""
    direction: Vector = centred[np.argmax(np.einsum("ij,ij->i", centred, centred))]
    for _ in range(ROUNDS):
        direction = _of_length_one(((centred @ direction) @ centred).astype(np.float32))
    return direction


def _centre(vectors: Matrix) -> Vector:
    """The mean direction."""
    return _of_length_one(vectors.sum(axis=0, dtype=np.float32))


def _of_length_one(vector: Vector) -> Vector:
    length = np.float32(np.linalg.norm(vector))
    unit: Vector = vector / length if length else vector
    return unit
