"""A point's vectors as bytes, of which a question's boundary is built in one go.

In go points; out come bytes, and vectors from them. Guaranteed: what is unpacked is what the engine keeps, for token
vectors to the last digit; tokens that are not on the grid are not packed, and their boundary is left to the engine.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from schemas.modes import Fingerprint
from schemas.vectors import Point, Vector

QUANTISATION_STEPS = np.float32(128)
"""Steps from 0 to 1 of token vectors on their way into the index (`embedding.token_grid`)."""

MAX_TOKEN_NORM = 181
"""The longest token vector that is packed, in steps: sums of products with a question's tokens stay exact below that
(`edge_boundary`). Those of real texts are about 128 long."""

QuantisedTokens = NDArray[np.int8]
"""Shape (tokens, token_dim)."""


class Unpacked(NamedTuple):
    """A point's vectors: the pooled one of length 1, the tokens in steps of the grid."""

    pooled: Vector
    tokens: QuantisedTokens


def pack_point(fingerprint: Fingerprint, point: Point) -> bytes | None:
    """Give the bytes of a point; None where its tokens are not on the grid, or too long."""
    tokens = np.zeros((0, fingerprint.token_dim), np.float32) if point.tokens is None else point.tokens
    steps = tokens * QUANTISATION_STEPS
    grid = np.clip(steps, 1 - QUANTISATION_STEPS, QUANTISATION_STEPS - 1).astype(np.int8)
    if not np.array_equal(grid, steps) or bool((np.square(steps).sum(axis=1) > MAX_TOKEN_NORM**2).any()):
        return None
    return b"".join((precise_unit_vector(point.vector).tobytes(), grid.tobytes()))


def unpack_vectors(fingerprint: Fingerprint, data: bytes, start: int = 0) -> Unpacked:
    """Give the vectors of bytes from a place on, as views of them."""
    pooled = np.frombuffer(data, np.float32, fingerprint.dim, start)
    tokens = np.frombuffer(data, np.int8, offset=start + pooled.nbytes)
    return Unpacked(pooled, tokens.reshape(-1, fingerprint.token_dim) if fingerprint.token_dim else tokens[:, None])


def precise_unit_vector(vector: Vector) -> Vector:
    """Give the vector with length 1; one without a direction as it is."""
    wide = vector.astype(np.float64)
    length = float(np.sqrt(wide @ wide))
    return vector if not length else (wide / length).astype(np.float32)
