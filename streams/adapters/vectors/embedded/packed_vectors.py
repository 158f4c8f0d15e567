"""The vectors of all collections packed to bytes, on disk, sorted by boundary: what boundaries are read from.

A row has a point's vectors and the fields that filters check. The engine reads point by point, from all over its files:
200 take 20 ms the first time; one range of keys takes 0.5 ms. Token vectors and passages are here alone, pooled vectors
in the engine as well; token vectors that are not quantised are left to the engine, with their boundary.

The pooled vector has 16-bit floats: half of the space, and cosines within 2e-5 of those of 32 bits. In a space of cut
texts the passages of each follow the pooled vector: their number, their token counts, and their own pooled vectors. The
pooled vector of a cut text is the mean of these, in its length: its product with a question is the mean of their
cosines, also after vectors were read and written again.

Guaranteed: a complete collection has a row, perhaps without vectors, for each point whose write returned. An unpacked
pooled vector of a text that is not cut equals the engine's, to the last digit; that of a cut text has its direction.
"""

import json
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options, Rdict, ReadOptions, WriteBatch

from schemas.failures import Unavailable
from schemas.models.vectors import MemoryFilter, PassageVectors, Point, Vector
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.vectors.embedded.edge_failures import CountedCalls, is_lack, translate_engine_errors

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
        return cls(mode, type_, tuple(sorted(scope.items())))

    def admitted(self, where: MemoryFilter) -> bool:
        """True if the filter admits such points, whatever their time."""
        return where.admits(self.mode, self.type, dict(self.scope))


class PointRow(NamedTuple):
    memory_id: str
    kind: FilterFields
    occurred_ms: int
    vectors: Unpacked

    @classmethod
    def of(cls, point: Point, vectors: Unpacked) -> Self:
        return cls(point.memory_id, FilterFields.of(point.mode, point.type, point.scope), point.occurred_ms, vectors)


class RowStart(NamedTuple):
    """What a row has before its vectors, and the position of the pooled one."""

    occurred_ms: int
    kind: FilterFields
    pooled_at: int

    @classmethod
    def of(cls, row: bytes) -> Self:
        occurred_ms, length = _HEADER.unpack_from(row)
        end = _HEADER.size + length
        return cls(occurred_ms, _filter_fields(row[_HEADER.size : end]), end)

    def texts(self, fingerprint: Fingerprint, row: bytes) -> tuple[PackedTokens, PassageVectors | None]:
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
    passages = b""
    if fingerprint.passages is not None and point.passages is None:
        passages = np.zeros(1, _COUNT).tobytes()
    elif fingerprint.passages is not None and point.passages is not None:
        counts = np.array([len(point.passages), *point.passages.token_counts.tolist()], _COUNT)
        passages = counts.tobytes() + half_unit_vectors(point.passages).pooled.astype(_FLOAT).tobytes()
    return b"".join((header, kind, pooled.tobytes(), passages, grid.tobytes()))


def unpack_vectors(fingerprint: Fingerprint, row: bytes) -> Unpacked:
    return _unpack(fingerprint, row, RowStart.of(row))


def unpack_row(fingerprint: Fingerprint, memory_id: str, row: bytes) -> PointRow:
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
    return replace(passages, pooled=np.array(list(map(half_unit_vector, passages.pooled))))


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
    return FilterFields.of(*json.loads(data))


T = TypeVar("T")

POINT_PAGE_SIZE = 1024
"""Points of one read, which holds the GIL for 10 ms."""

WRITE_BUFFER_BYTES = 4 * 2**20
"""RocksDB's memtable: a thousand short memories."""

BLOCK_BYTES = 16 * 1024
"""The unit of reads: four short memories."""

BLOOM_BITS = 10
"""Bits per key: a lookup of a missing id skips 99 of 100 files without reading them (RocksDB's wiki)."""

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
        """Write or replace points, each with its row; None if its vectors can't be packed."""
        batch = WriteBatch(raw_mode=True)
        for point, row in points:
            memory_id, boundary = point.memory_id.encode(), point.boundary.encode()
            self._remove(batch, collection, memory_id)
            batch.put(_row_prefix(collection, boundary) + memory_id, row or b"")
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
        bounds = _within(prefix)
        rows: Iterator[Any] = iter(self._call(lambda: self._store.items(from_key=prefix, read_opt=bounds)))
        while (row := self._call(lambda: next(rows, None))) is not None:
            key, value = row
            memory_id = key[len(prefix) :].decode()
            yield memory_id, unpack_row(space.fingerprint, memory_id, value) if value else None

    def rows(self, space: VectorSpace, boundary: str, memory_ids: Sequence[str]) -> list[bytes | None]:
        """Return these points' rows of a boundary as bytes, `b""` for unpacked vectors, None for unknown ids.

        Ids in order are found faster.
        """
        prefix = _row_prefix(space.collection, boundary.encode())
        return self._get([prefix + memory_id.encode() for memory_id in memory_ids])

    def has_more(self, space: VectorSpace, boundary: str, count: int) -> bool:
        prefix, rows = _row_prefix(space.collection, boundary.encode()), 0
        bounds = _within(prefix)
        keys: Iterator[Any] = iter(self._call(lambda: self._store.keys(from_key=prefix, read_opt=bounds)))
        while rows <= count and self._call(lambda: next(keys, None)) is not None:
            rows += 1
        return rows > count

    def ids(self, space: VectorSpace, boundary: str) -> list[str]:
        prefix = _row_prefix(space.collection, boundary.encode())
        bounds = _within(prefix)
        read = self._call(lambda: list(self._store.keys(from_key=prefix, read_opt=bounds)))
        return [cast(bytes, key)[len(prefix) :].decode() for key in read]

    def present(self, collection: str, memory_ids: Sequence[str]) -> set[str]:
        """Return which of these points have a row, of any boundary, perhaps without vectors."""
        start = _key(_BOUNDARIES, collection)
        boundaries = self._get([start + memory_id.encode() for memory_id in memory_ids])
        return {name for name, boundary in zip(memory_ids, boundaries, strict=True) if boundary is not None}

    def find(self, space: VectorSpace, memory_ids: Sequence[str]) -> dict[str, PointRow | None]:
        """Return the rows of these points of any boundary, None for unpacked vectors; unknown ids are left out."""
        start = _key(_BOUNDARIES, space.collection)
        boundaries = self._get([start + memory_id.encode() for memory_id in memory_ids])
        present = [(name, within) for name, within in zip(memory_ids, boundaries, strict=True) if within is not None]
        rows = self._get([_row_prefix(space.collection, boundary) + name.encode() for name, boundary in present])
        return {
            memory_id: unpack_row(space.fingerprint, memory_id, row) if row else None
            for (memory_id, _), row in zip(present, rows, strict=True)
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
        for kind in (_COMPLETE, _ROWS, _BOUNDARIES):
            start = _key(kind, collection)
            self._call(partial(self._store.delete_range, start, start + _AFTER_KEYS))

    def sync(self) -> None:
        """Sync the log to the disk. May run in another thread than writes."""
        translate_engine_errors(lambda: self._store.flush_wal(sync=True))

    def close(self) -> None:
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


def _key(kind: bytes, name: str | bytes) -> bytes:
    """Return the start of the keys of this kind and name, and of no other keys."""
    data = name.encode() if isinstance(name, str) else name
    return kind + struct.pack(">I", len(data)) + data


def _row_prefix(collection: str, boundary: bytes) -> bytes:
    return _key(_key(_ROWS, collection), boundary)


def _within(prefix: bytes) -> ReadOptions:
    """Bound an iteration to the keys with this start.

    The iterator reads the bounds from this object: hold it while the iteration goes on.
    """
    bounds = ReadOptions()
    bounds.set_iterate_lower_bound(prefix)
    bounds.set_iterate_upper_bound(prefix + _AFTER_KEYS)
    return bounds


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
