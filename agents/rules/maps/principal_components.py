"""Project vectors onto the plane of their two principal components: a map at once, and the start of a better one. Pure.

Enters: vectors of one space. Leaves: places in the square. Guaranteed: deterministic, the signs of the components too.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from agents.rules.maps.places import FILLED_SHARE, Places, clip_to_square
from schemas.models.vectors import Matrix, Vector

MAX_FITTED_ROWS = 4096
"""Vectors that the components are found with, of more every n-th: a tenth of a second for 1,024 dimensions."""


TINY = 1e-9
"""Length of a direction that is only rounding: equal vectors have none."""


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
        axes = _principal_axes(centred)
        extent = float(np.abs((rows - mean) @ axes).max())
        return cls(mean, axes, FILLED_SHARE / extent if extent else 1.0)

    def project(self, rows: Matrix) -> Places:
        """Return the places of vectors; those beyond the square lie on its edge."""
        return clip_to_square(np.asarray((rows - self.mean) @ self.axes * np.float32(self.scale), np.float32))


def _principal_axes(centred: Matrix) -> Matrix:
    """Return the two directions of largest variance, shape (dim, 2); the largest entry of each is positive."""
    axes = np.zeros((centred.shape[1], 2), np.float32)
    found = _directions(np.asarray(centred, np.float64))
    signs = np.sign(found[np.abs(found).argmax(axis=0), np.arange(found.shape[1])])
    axes[:, : found.shape[1]] = found * signs
    return axes


def _directions(centred: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return at most two directions, the one with most variance first, shape (dim, directions); 0 for none."""
    is_wide = len(centred) < centred.shape[1]
    # Of fewer rows than columns the products of rows are the smaller problem, with the same variances.
    products = centred @ centred.T if is_wide else centred.T @ centred
    best = np.linalg.eigh(products)[1][:, ::-1][:, :2]
    found = centred.T @ best if is_wide else best
    lengths = np.linalg.norm(found, axis=0)
    return np.asarray(found / np.where(lengths > TINY, lengths, np.inf), np.float64)
