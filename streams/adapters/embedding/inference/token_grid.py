"""Passages' token vectors as 8-bit integers: what goes over the pipe, is kept at hand, and lies in the index.

Enters: rows of length 1. Leaves: integers, and the same rows again, a little moved. Guaranteed: rows that were on the
grid come back as they were, to the last bit.
"""

import numpy as np
from numpy.typing import NDArray

from schemas.vectors import Matrix

QuantisedTokens = NDArray[np.int8]
"""Shape (tokens, dim)."""

QUANTISATION_STEPS = 128
"""Steps from 0 to 1. A power of two: every step is a number that 16-bit floats hold exactly as well. Of 128
dimensions, rounding moves a dot product of two unit vectors by 0.002 on average."""


def quantise_tokens(tokens: Matrix) -> QuantisedTokens:
    """The nearest steps; 1 itself, which no row of more than one dimension needs, is cut to 127."""
    grid: QuantisedTokens = np.clip(
        np.rint(tokens * np.float32(QUANTISATION_STEPS)), 1 - QUANTISATION_STEPS, QUANTISATION_STEPS - 1
    ).astype(np.int8)
    return grid


def dequantise_tokens(grid: QuantisedTokens) -> Matrix:
    """The rows that the integers stand for."""
    return grid.astype(np.float32) * np.float32(1 / QUANTISATION_STEPS)
