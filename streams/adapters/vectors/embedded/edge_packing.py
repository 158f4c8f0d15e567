"""Packs a point's vectors to bytes, and unpacks them to the rows of which a boundary is built.

Enters: points. Leaves: bytes, and vectors from them. Guaranteed: unpacked vectors equal those in the engine, token
vectors to the last digit; token vectors that are not quantised can't be packed, and leave their boundary to the engine.
"""

from collections.abc import Mapping
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from schemas.models.vectors import MemoryFilter, Point, Vector
from schemas.state.modes import Fingerprint

PACKED_STEPS = np.float32(128)
"""Steps from 0 to 1 of quantised token vectors (`embedding.inference.token_grid`)."""

MAX_TOKEN_NORM = 181
"""The norm of the longest token vector that can be packed, in steps: dot products with a query's tokens stay exact
(`boundary_vectors`). Token vectors of real texts have a norm of about 128."""

PackedTokens = NDArray[np.int8]
"""Shape (tokens, token_dim)."""


class Unpacked(NamedTuple):
    """A point's vectors: the pooled one normalised, the tokens in quantisation steps."""

    pooled: Vector
    tokens: PackedTokens


class FilterFields(NamedTuple):
    """The fields of a point that filters check, except its time."""

    mode: str
    type: str
    scope: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, mode: str, type_: str, scope: Mapping[str, str]) -> Self:
        """Return the fields of such a payload."""
        return cls(mode, type_, tuple(sorted(scope.items())))

    def admitted(self, where: MemoryFilter) -> bool:
        """True if the filter admits such points, whatever their time."""
        return where.admits(self.mode, self.type, dict(self.scope))


class PointRow(NamedTuple):
    """A point in memory."""

    memory_id: str
    kind: FilterFields
    occurred_ms: int
    vectors: Unpacked

    @classmethod
    def of(cls, point: Point, vectors: Unpacked) -> Self:
        """Return a point with its unpacked vectors."""
        return cls(point.memory_id, FilterFields.of(point.mode, point.type, point.scope), point.occurred_ms, vectors)


def pack_point(fingerprint: Fingerprint, point: Point) -> bytes | None:
    """Return a point's vectors as bytes; None if its token vectors are not quantised, or too long."""
    tokens = np.zeros((0, fingerprint.token_dim), np.float32) if point.tokens is None else point.tokens
    steps = tokens * PACKED_STEPS
    grid = np.clip(steps, 1 - PACKED_STEPS, PACKED_STEPS - 1).astype(np.int8)
    if not np.array_equal(grid, steps) or bool((np.square(steps).sum(axis=1) > MAX_TOKEN_NORM**2).any()):
        return None
    return b"".join((precise_unit_vector(point.vector).tobytes(), grid.tobytes()))


def unpack_vectors(fingerprint: Fingerprint, data: bytes, start: int = 0) -> Unpacked:
    """Return the vectors in `data` from `start` on, as views."""
    pooled = np.frombuffer(data, np.float32, fingerprint.dim, start)
    tokens = np.frombuffer(data, np.int8, offset=start + pooled.nbytes)
    return Unpacked(pooled, tokens.reshape(-1, fingerprint.token_dim) if fingerprint.token_dim else tokens[:, None])


def precise_unit_vector(vector: Vector) -> Vector:
    """Normalise a vector in 64-bit floats; a zero vector stays as it is."""
    wide = vector.astype(np.float64)
    length = float(np.sqrt(wide @ wide))
    return vector if not length else (wide / length).astype(np.float32)
