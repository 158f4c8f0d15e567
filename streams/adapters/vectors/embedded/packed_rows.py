"""Rows of the packed store: a point's vectors, and the fields that filters check, as bytes.

The pooled vector has 16-bit floats: half of the space, and cosines within 2e-5 of those of 32 bits. In a space of cut
texts the passages of each follow the pooled vector: their number, their token counts, and their own pooled vectors. The
pooled vector of a cut text is the mean of these, in its length: its product with a question is the mean of their
cosines, also after vectors were read and written again.

Guaranteed: an unpacked pooled vector of a text that is not cut equals the engine's, to the last digit; that of a cut
text has its direction.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from schemas.models.vectors import MemoryFilter, PassageVectors, Point, Vector
from schemas.state.modes import Fingerprint

PACKED_STEPS = np.float32(128)
"""Steps from 0 to 1 of quantised token vectors (`embedding.inference.token_vectors`)."""

_HEADER = struct.Struct("<qH")
"""The start of a row: its time, and the length of its filter fields as JSON."""

MAX_FIELDS_BYTES = 0xFFFF
"""Filter fields as JSON: the length has 16 bits."""

ROUNDED_LENGTH_ERROR = 2.0**-10
"""How far the square of the length of a unit vector is from 1 once its numbers are rounded to 11 bits, at most."""

_FLOAT = np.dtype(np.float16)

_COUNT = np.dtype(np.uint16)
"""The number of passages, and of the token vectors of each."""

PackedTokens = NDArray[np.int8]
"""Shape (tokens, token_dim)."""


class Unpacked(NamedTuple):
    """A point's vectors: the pooled ones normalised but the mean of passages, the tokens in quantisation steps."""

    pooled: Vector
    tokens: PackedTokens
    passages: PassageVectors | None = None


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


class RowStart(NamedTuple):
    """What a row has before its vectors, and the position of the pooled one."""

    occurred_ms: int
    kind: FilterFields
    pooled_at: int

    @classmethod
    def of(cls, row: bytes) -> Self:
        """Read the start of a row."""
        occurred_ms, length = _HEADER.unpack_from(row)
        end = _HEADER.size + length
        return cls(occurred_ms, _filter_fields(row[_HEADER.size : end]), end)

    def texts(self, fingerprint: Fingerprint, row: bytes) -> tuple[PackedTokens, PassageVectors | None]:
        """Read the token vectors and the passages of a row with this start."""
        at, passages = self.pooled_at + _FLOAT.itemsize * fingerprint.dim, None
        if fingerprint.passages is not None:
            [count] = np.frombuffer(row, _COUNT, 1, at).tolist()
            at += _COUNT.itemsize
            if count:
                token_counts = np.frombuffer(row, _COUNT, count, at).astype(np.int64)
                at += token_counts.size * _COUNT.itemsize
                pooled = np.frombuffer(row, _FLOAT, count * fingerprint.dim, at).astype(np.float32)
                at += pooled.size * _FLOAT.itemsize
                passages = PassageVectors(pooled.reshape(count, -1), token_counts)
        if not fingerprint.token_dim:
            return np.zeros((0, 0), np.int8), passages
        return np.frombuffer(row, np.int8, offset=at).reshape(-1, fingerprint.token_dim), passages


def pack_point(fingerprint: Fingerprint, point: Point) -> bytes | None:
    """Return a point's row; None if its token vectors are not quantised, or its filter fields too long.

    A point without a row keeps its vectors in the engine, which has no passages: it is scored as a whole text.
    """
    tokens = np.zeros((0, fingerprint.token_dim), np.float32) if point.tokens is None else point.tokens
    steps = tokens * PACKED_STEPS
    grid = np.clip(steps, 1 - PACKED_STEPS, PACKED_STEPS - 1).astype(np.int8)
    if not np.array_equal(grid, steps):
        return None
    kind = json.dumps([point.mode, point.type, dict(sorted(point.scope.items()))]).encode()
    if len(kind) > MAX_FIELDS_BYTES:
        return None
    if point.passages is not None and point.passages.token_counts.max() > np.iinfo(_COUNT).max:
        return None
    pooled = half_whole_vector(point).astype(_FLOAT)
    header = _HEADER.pack(point.occurred_ms, len(kind))
    passages = b"" if fingerprint.passages is None else _pack_passages(point.passages)
    return b"".join((header, kind, pooled.tobytes(), passages, grid.tobytes()))


def _pack_passages(passages: PassageVectors | None) -> bytes:
    if passages is None:
        return np.zeros(1, _COUNT).tobytes()
    counts = np.array([len(passages), *passages.token_counts.tolist()], _COUNT)
    return counts.tobytes() + half_unit_vectors(passages).pooled.astype(_FLOAT).tobytes()


def unpack_vectors(fingerprint: Fingerprint, row: bytes) -> Unpacked:
    """Return the vectors of a row."""
    return _unpack(fingerprint, row, RowStart.of(row))


def unpack_row(fingerprint: Fingerprint, memory_id: str, row: bytes) -> PointRow:
    """Return the point of a row."""
    start = RowStart.of(row)
    return PointRow(memory_id, start.kind, start.occurred_ms, _unpack(fingerprint, row, start))


def _unpack(fingerprint: Fingerprint, row: bytes, start: RowStart) -> Unpacked:
    pooled = np.frombuffer(row, _FLOAT, fingerprint.dim, start.pooled_at).astype(np.float32)
    return Unpacked(pooled, *start.texts(fingerprint, row))


def with_half_floats(point: Point) -> Point:
    """Return a point whose pooled vectors are as they are stored."""
    passages = None if point.passages is None else half_unit_vectors(point.passages)
    return replace(point, vector=half_whole_vector(point), passages=passages)


def half_whole_vector(point: Point) -> Vector:
    """Return what a search compares: the normalised vector, or the mean of the passages, in 16-bit floats."""
    if point.passages is None:
        return half_unit_vector(point.vector)
    # Of passages as they are stored, so that those that were read give the same.
    return _halved(half_unit_vectors(point.passages).mean())


def half_unit_vectors(passages: PassageVectors) -> PassageVectors:
    """Return passages whose pooled vectors are normalised and rounded as `half_unit_vector` does."""
    return replace(passages, pooled=np.array([half_unit_vector(one) for one in passages.pooled]))


def half_unit_vector(vector: Vector) -> Vector:
    """Normalise a vector and round it to 16-bit floats; one that was rounded before stays as it is."""
    if np.array_equal(_halved(vector), vector) and abs(float(vector @ vector) - 1) < ROUNDED_LENGTH_ERROR:
        return vector
    return _halved(precise_unit_vector(vector))


def _halved(vector: Vector) -> Vector:
    rounded: Vector = vector.astype(np.float16).astype(np.float32)
    return rounded


def precise_unit_vector(vector: Vector) -> Vector:
    """Normalise a vector in 64-bit floats; a zero vector stays as it is."""
    wide = vector.astype(np.float64)
    length = float(np.sqrt(wide @ wide))
    return vector if not length else (wide / length).astype(np.float32)


@lru_cache(1024)
def _filter_fields(data: bytes) -> FilterFields:
    """Return the filter fields in a row."""
    return FilterFields.of(*json.loads(data))
