"""A collection's vectors packed to bytes, on disk, sorted by boundary; and the rows of which a boundary is built.

The engine reads point by point, from all over its files: 200 take 20 ms the first time; one range of keys takes 0.5 ms.
Derived data: the engine decides which points exist, and what is missing here is read from it. Unpacked vectors equal
the engine's, token vectors to the last digit; those that are not quantised leave their boundary to the engine.
"""

import json
import shutil
import struct
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options, Rdict, ReadOptions, WriteBatch

from schemas.models.vectors import MemoryFilter, Point, Vector
from schemas.state.modes import Fingerprint

PACKED_STEPS = np.float32(128)
"""Steps from 0 to 1 of quantised token vectors (`embedding.inference.token_vectors`)."""

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


WRITE_BUFFER_BYTES = 4 * 2**20
"""RocksDB's memtable: a thousand short memories."""

BLOCK_BYTES = 16 * 1024
"""The unit of reads: four short memories."""

BLOOM_BITS = 10
"""Bits per key: a lookup of a missing id skips 99 of 100 files without reading them (RocksDB's wiki)."""

_ROW_HEADER = struct.Struct("<qH")
"""The start of a row: its time, and the length of its filter fields as JSON."""

_ROWS, _BOUNDARIES = b"v", b"h"
"""The first bytes of keys: rows by boundary and id, boundaries by id."""


class PackedVectors:
    """An open store. A write survives a kill of the process, and a power cut after `sync`."""

    def __init__(self, directory: Path, fingerprint: Fingerprint) -> None:
        """Open the store; replace a broken one by an empty one."""
        self._fingerprint = fingerprint
        try:
            self._store = Rdict(str(directory), _options())
        except Exception:
            shutil.rmtree(directory, ignore_errors=True)
            self._store = Rdict(str(directory), _options())

    def put(self, points: Iterable[tuple[Point, bytes | None]]) -> None:
        """Write or replace points; remove those without bytes."""
        batch = WriteBatch(raw_mode=True)
        for point, data in points:
            self._remove(batch, point.memory_id)
            if data is not None:
                boundary = point.boundary.encode()
                batch.put(_prefix(boundary) + point.memory_id.encode(), _row_header(point) + data)
                batch.put(_BOUNDARIES + point.memory_id.encode(), boundary)
        self._store.write(batch)

    def remove(self, memory_ids: Iterable[str]) -> None:
        """Remove points; unknown ids are ignored."""
        batch = WriteBatch(raw_mode=True)
        for memory_id in memory_ids:
            self._remove(batch, memory_id)
        self._store.write(batch)

    def of(self, boundary: str) -> Iterator[PointRow]:
        """Yield all rows of a boundary, by id, in the state at the first one."""
        prefix = _prefix(boundary.encode())
        bounds = ReadOptions()
        bounds.set_iterate_lower_bound(prefix)
        bounds.set_iterate_upper_bound(prefix + b"\xff")
        rows: Any = self._store.items(from_key=prefix, read_opt=bounds)
        for key, value in rows:
            yield self._row(key[len(prefix) :].decode(), value)

    def sync(self) -> None:
        """Sync the log to the disk. May run in another thread than writes."""
        self._store.flush_wal(sync=True)

    def close(self) -> None:
        """Flush, and release the files."""
        self._store.close()

    def _remove(self, batch: WriteBatch, memory_id: str) -> None:
        boundary = self._store.get(_BOUNDARIES + memory_id.encode())
        if boundary is not None:
            batch.delete(_prefix(boundary) + memory_id.encode())
            batch.delete(_BOUNDARIES + memory_id.encode())

    def _row(self, memory_id: str, value: bytes) -> PointRow:
        occurred_ms, length = _ROW_HEADER.unpack_from(value)
        start = _ROW_HEADER.size + length
        kind = _kind(value[_ROW_HEADER.size : start])
        return PointRow(memory_id, kind, occurred_ms, unpack_vectors(self._fingerprint, value, start))


def _prefix(boundary: bytes) -> bytes:
    """Return the prefix of the keys of a boundary's rows, and of no other keys."""
    return _ROWS + struct.pack(">I", len(boundary)) + boundary


def _row_header(point: Point) -> bytes:
    kind = json.dumps([point.mode, point.type, dict(sorted(point.scope.items()))]).encode()
    return _ROW_HEADER.pack(point.occurred_ms, len(kind)) + kind


@lru_cache(1024)
def _kind(data: bytes) -> FilterFields:
    return FilterFields.of(*json.loads(data))


def _options() -> Options:
    blocks = BlockBasedOptions()
    blocks.set_block_size(BLOCK_BYTES)
    blocks.set_bloom_filter(BLOOM_BITS, block_based=False)
    # A small cache: boundaries are cached in memory once they are read.
    blocks.set_block_cache(Cache(WRITE_BUFFER_BYTES))
    options = Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    options.set_write_buffer_size(WRITE_BUFFER_BYTES)
    options.set_compression_type(DBCompressionType.none())
    options.set_keep_log_file_num(1)
    return options
