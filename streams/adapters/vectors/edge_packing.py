"""A point's vectors as one string of its payload, so that those of a whole boundary are read at once.

The engine gives vectors out as lists of Python floats, 150 us a memory; a string of 4.7 KB takes 15. In go points;
out come strings, and the same numbers again. Guaranteed: what comes back scores as what the engine keeps, for token
vectors to the last digit; tokens that are not on the grid are not packed, and their boundary is left to the engine.
"""

from binascii import a2b_base64, b2a_base64
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.modes import Fingerprint
from schemas.vectors import Point, Vector

PACKED = "packed"
"""The payload field that holds the string. It has no index."""

GRID = np.float32(128)
"""Steps from 0 to 1 of token vectors on their way into the index (`embedding.token_grid`)."""

LONGEST = 181
"""The longest token vector that is packed, in steps: sums of products with a question's tokens stay exact below that
(`edge_scoring`). Those of real texts are about 128 long."""

Grid = NDArray[np.int8]
"""Shape (tokens, token_dim)."""


class Unpacked(NamedTuple):
    """A point's vectors: the pooled one of length 1, the tokens in steps of the grid."""

    pooled: Vector
    tokens: Grid


def packed(fingerprint: Fingerprint, point: Point) -> str | None:
    """Give the string of a point; None where its tokens are not on the grid, or too long."""
    tokens = np.zeros((0, fingerprint.token_dim), np.float32) if point.tokens is None else point.tokens
    steps = tokens * GRID
    grid = np.clip(steps, 1 - GRID, GRID - 1).astype(np.int8)
    if not np.array_equal(grid, steps) or bool((np.square(steps).sum(axis=1) > LONGEST**2).any()):
        return None
    return b2a_base64(unit(point.vector).tobytes() + grid.tobytes(), newline=False).decode()


def unpacked(fingerprint: Fingerprint, string: str) -> Unpacked:
    """Give the vectors of a string, as views of its bytes."""
    data = a2b_base64(string)
    pooled = np.frombuffer(data, np.float32, fingerprint.dim)
    tokens = np.frombuffer(data, np.int8, offset=pooled.nbytes)
    return Unpacked(pooled, tokens.reshape(-1, fingerprint.token_dim) if fingerprint.token_dim else tokens[:, None])


def unit(vector: Vector) -> Vector:
    """Give the vector with length 1; one without a direction as it is."""
    wide = vector.astype(np.float64)
    length = float(np.sqrt(wide @ wide))
    return vector if not length else (wide / length).astype(np.float32)
