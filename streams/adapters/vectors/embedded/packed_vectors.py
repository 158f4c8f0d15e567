"""The vectors of all collections packed to bytes, on disk, sorted by boundary; and the rows of which one is built.

The engine reads point by point, from all over its files: 200 take 20 ms the first time; one range of keys takes 0.5 ms.
The engine decides which points exist, and has their pooled vectors; token vectors are here alone, but in collections of
earlier releases. Unpacked vectors equal the engine's; token vectors that are not quantised are left to the engine, with
their boundary.

Guaranteed: a complete collection has a row, perhaps without vectors, for each point whose write returned.
"""

import json
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options, Rdict, ReadOptions, WriteBatch

from schemas.failures import Unavailable
from schemas.models.vectors import MemoryFilter, Point, Vector
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.vectors.embedded.engine_errors import CountedCalls, is_lack, translate_engine_errors

T = TypeVar("T")

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

ROW_HEADER = struct.Struct("<qH")
"""The start of a row: its time, and the length of its filter fields as JSON."""

_ROWS, _BOUNDARIES, _COMPLETE = b"v", b"h", b"c"
"""The first bytes of keys: rows by collection, boundary and id; boundaries by collection and id; complete ones."""

_AFTER_KEYS = b"\xff"
"""Follows all keys with the same start: ids and the lengths of names begin with smaller bytes."""


class PackedVectors:
    """An open store. A write survives a kill of the process, and a power cut after `sync`.

    Any error is `Unavailable`. A store that can't be read is replaced by an empty one, in which nothing is complete,
    but not for a lack of the system.
    """

    def __init__(self, directory: Path) -> None:
        """Open the store, or a new one. Raises Unavailable for a lack of the system."""
        self._directory = directory
        self._counted = CountedCalls()
        try:
            self._store = self._open()
        except Unavailable as problem:
            if is_lack(problem):
                raise
            self._store = self._emptied()

    def put(self, collection: str, points: Iterable[tuple[Point, bytes | None]]) -> None:
        """Write or replace points, each with its packed vectors; None if these can't be packed."""
        batch = WriteBatch(raw_mode=True)
        for point, data in points:
            memory_id, boundary = point.memory_id.encode(), point.boundary.encode()
            self._remove(batch, collection, memory_id)
            batch.put(_row_prefix(collection, boundary) + memory_id, b"" if data is None else _row_header(point) + data)
            batch.put(_key(_BOUNDARIES, collection) + memory_id, boundary)
        self._call(lambda: self._store.write(batch))

    def remove(self, collection: str, memory_ids: Iterable[str]) -> None:
        """Remove points; unknown ids are ignored."""
        batch = WriteBatch(raw_mode=True)
        for memory_id in memory_ids:
            self._remove(batch, collection, memory_id.encode())
        self._call(lambda: self._store.write(batch))

    def of(self, space: VectorSpace, boundary: str) -> Iterator[tuple[str, PointRow | None]]:
        """Yield ids and rows of a boundary, by id, in the state at the first one; None for unpacked vectors."""
        prefix = _row_prefix(space.collection, boundary.encode())
        bounds = ReadOptions()
        bounds.set_iterate_lower_bound(prefix)
        bounds.set_iterate_upper_bound(prefix + _AFTER_KEYS)
        rows: Iterator[Any] = iter(self._call(lambda: self._store.items(from_key=prefix, read_opt=bounds)))
        while (row := self._call(lambda: next(rows, None))) is not None:
            key, value = row
            memory_id = key[len(prefix) :].decode()
            yield memory_id, _row(space.fingerprint, memory_id, value) if value else None

    def rows(self, space: VectorSpace, boundary: str, memory_ids: Sequence[str]) -> list[bytes | None]:
        """Return these points' rows of a boundary as bytes, `b""` for unpacked vectors, None for unknown ids.

        Ids in order are found faster.
        """
        prefix = _row_prefix(space.collection, boundary.encode())
        return self._get([prefix + memory_id.encode() for memory_id in memory_ids])

    def find(self, space: VectorSpace, memory_ids: Sequence[str]) -> dict[str, PointRow | None]:
        """Return the rows of these points of any boundary, None for unpacked vectors; unknown ids are left out."""
        start = _key(_BOUNDARIES, space.collection)
        boundaries = self._get([start + memory_id.encode() for memory_id in memory_ids])
        known = [(one, boundary) for one, boundary in zip(memory_ids, boundaries, strict=True) if boundary is not None]
        rows = self._get([_row_prefix(space.collection, boundary) + one.encode() for one, boundary in known])
        return {
            memory_id: _row(space.fingerprint, memory_id, row) if row else None
            for (memory_id, _), row in zip(known, rows, strict=True)
            if row is not None
        }

    def is_complete(self, collection: str) -> bool:
        """True if all points of the collection were written here."""
        return self._call(lambda: self._store.get(_key(_COMPLETE, collection))) is not None

    def begin(self, collection: str) -> None:
        """Note that a collection is complete: it is new."""
        self.drop(collection)
        self._call(lambda: self._store.put(_key(_COMPLETE, collection), b""))

    def drop(self, collection: str) -> None:
        """Remove all of a collection."""
        for kind in (_COMPLETE, _ROWS, _BOUNDARIES):
            start = _key(kind, collection)
            self._call(partial(self._store.delete_range, start, start + _AFTER_KEYS))

    def sync(self) -> None:
        """Sync the log to the disk. May run in another thread than writes."""
        translate_engine_errors(lambda: self._store.flush_wal(sync=True))

    def close(self) -> None:
        """Flush, and release the files."""
        translate_engine_errors(self._store.close)

    def _get(self, keys: list[Any]) -> list[bytes | None]:
        return cast(list[bytes | None], self._call(lambda: self._store.get(keys))) if keys else []

    def _remove(self, batch: WriteBatch, collection: str, memory_id: bytes) -> None:
        place = _key(_BOUNDARIES, collection) + memory_id
        boundary = self._call(lambda: self._store.get(place))
        if boundary is not None:
            batch.delete(_row_prefix(collection, boundary) + memory_id)
            batch.delete(place)

    def _call(self, call: Callable[[], T]) -> T:
        try:
            return self._counted(call)
        except Unavailable:
            if self._counted.show_damage:
                self._counted = CountedCalls()
                with suppress(Unavailable):
                    self.close()
                self._store = self._emptied()
            raise

    def _open(self) -> Rdict:
        return translate_engine_errors(lambda: Rdict(str(self._directory), _options()))

    def _emptied(self) -> Rdict:
        shutil.rmtree(self._directory, ignore_errors=True)
        return self._open()


def _row(fingerprint: Fingerprint, memory_id: str, value: bytes) -> PointRow:
    occurred_ms, length = ROW_HEADER.unpack_from(value)
    start = ROW_HEADER.size + length
    return PointRow(
        memory_id, filter_fields(value[ROW_HEADER.size : start]), occurred_ms, unpack_vectors(fingerprint, value, start)
    )


def _key(kind: bytes, name: str | bytes) -> bytes:
    """Return the start of the keys of this kind and name, and of no other keys."""
    data = name.encode() if isinstance(name, str) else name
    return kind + struct.pack(">I", len(data)) + data


def _row_prefix(collection: str, boundary: bytes) -> bytes:
    return _key(_key(_ROWS, collection), boundary)


def _row_header(point: Point) -> bytes:
    kind = json.dumps([point.mode, point.type, dict(sorted(point.scope.items()))]).encode()
    return ROW_HEADER.pack(point.occurred_ms, len(kind)) + kind


@lru_cache(1024)
def filter_fields(data: bytes) -> FilterFields:
    """Return the filter fields in a row."""
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
