"""How a memory's vectors are named in Qdrant, embedded or server, and how they come back.

In go points of the port; out come vectors in plain Python, as both Qdrant packages take them. Guaranteed: a space that
keeps no token vectors has one vector without a name, as it had before there were any; every other space has two by
name, and a memory without tokens has only the first.
"""

from typing import Any

import numpy as np

from schemas.modes import Fingerprint
from schemas.vectors import Encoded, Point

POOLED = "pooled"
"""The vector of the whole text, compared by cosine."""

TOKENS = "tokens"
"""The vectors of its tokens, compared by their greatest dot products. Kept in 16 bits a number: on turns of our chats
the scores are within 1e-4 of exact ones (none off for a grid of 128ths), and what is read and written again scores the
same to the last digit. Turbo8 takes a third less room, is off by 1e-3, and scores otherwise after each such move."""


def pooled_name(fingerprint: Fingerprint) -> str | None:
    """Give the name by which the whole text's vector is asked for."""
    return POOLED if fingerprint.token_dim else None


def named_vectors(fingerprint: Fingerprint, point: Point) -> list[float] | dict[str, Any]:
    """Give a point's vectors as lists: an engine takes these faster than arrays."""
    pooled: list[float] = point.vector.tolist()
    if not fingerprint.token_dim:
        return pooled
    without: dict[str, Any] = {POOLED: pooled}
    return without if point.tokens is None or not len(point.tokens) else without | {TOKENS: point.tokens.tolist()}


def decode_point_vectors(fingerprint: Fingerprint, kept: Any) -> Encoded:
    """Give the vectors of a point that was read; no row where it has no tokens."""
    named = kept if isinstance(kept, dict) else {POOLED: kept}
    rows = named.get(TOKENS) or np.empty((0, fingerprint.token_dim))
    return Encoded(np.array(named[POOLED], np.float32), np.array(rows, np.float32))
