"""Vectors of length 1. Pure."""

import numpy as np

from schemas.vectors import Vector

MIN_NORM = 1e-12
"""A vector shorter than this is left as it is, not divided by almost nothing; the value is fastembed's own."""


def unit_vector(vector: Vector) -> Vector:
    """The vector with length 1."""
    scaled: Vector = vector / max(float(np.sqrt(np.dot(vector, vector))), MIN_NORM)
    return scaled
