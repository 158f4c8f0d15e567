"""Quantises the token vectors of passages to 8-bit integers, for the pipe, the cache and the index.

Enters: unit rows. Leaves: integers, and the rows that they encode. Guaranteed: quantising such rows again gives the
same integers.
"""

import numpy as np
from numpy.typing import NDArray

from schemas.models.vectors import Matrix

QuantisedTokens = NDArray[np.int8]
"""Shape (tokens, dim)."""

QUANTISATION_STEPS = 128
"""Steps from 0 to 1. A power of two: 16-bit floats hold every step exactly as well. With 128 dimensions, rounding moves
a dot product of two unit vectors by 0.002 on average."""


def quantise_tokens(tokens: Matrix) -> QuantisedTokens:
    """Round to the nearest steps; clip 1 itself to 127, which a unit row of several dimensions hardly reaches."""
    grid: QuantisedTokens = np.clip(
        np.rint(tokens * np.float32(QUANTISATION_STEPS)), 1 - QUANTISATION_STEPS, QUANTISATION_STEPS - 1
    ).astype(np.int8)
    return grid


def dequantise_tokens(grid: QuantisedTokens) -> Matrix:
    """Return the rows that the integers encode."""
    return grid.astype(np.float32) * np.float32(1 / QUANTISATION_STEPS)
