"""The named vectors of a memory in Qdrant, embedded or server.

Enters: points of the port. Leaves: vectors in plain Python, as both Qdrant packages take them. Guaranteed: a space
without token vectors has one unnamed vector, as before token vectors existed; every other space has two by name, and a
memory without tokens has only the first.
"""

from typing import Any

import numpy as np

from schemas.models.vectors import Encoded, Point
from schemas.state.modes import Fingerprint

POOLED = "pooled"
"""The vector of the whole text, compared by cosine."""

TOKENS = "tokens"
"""The vectors of the tokens, compared by MaxSim. Stored as 16-bit floats: on the turns of our chats scores are within
1e-4 of exact ones (exact on a grid of 128ths), and vectors that are read and written again score the same to the last
digit. Turbo8 takes a third less space, is off by 1e-3, and changes scores with each such move."""


def pooled_name(fingerprint: Fingerprint) -> str | None:
    """Return the name of the whole text's vector; None in a space without token vectors."""
    return POOLED if fingerprint.token_dim else None


def named_vectors(fingerprint: Fingerprint, point: Point) -> list[float] | dict[str, Any]:
    """Return a point's vectors as lists, which an engine takes faster than arrays."""
    pooled: list[float] = point.vector.tolist()
    if not fingerprint.token_dim:
        return pooled
    if point.tokens is None or not len(point.tokens):
        return {POOLED: pooled}
    return {POOLED: pooled, TOKENS: point.tokens.tolist()}


def decode_point_vectors(fingerprint: Fingerprint, stored: Any) -> Encoded:
    """Return the vectors of a point that was read; no token rows if it has none."""
    named = stored if isinstance(stored, dict) else {POOLED: stored}
    rows = named.get(TOKENS) or np.empty((0, fingerprint.token_dim))
    return Encoded(np.array(named[POOLED], np.float32), np.array(rows, np.float32))
