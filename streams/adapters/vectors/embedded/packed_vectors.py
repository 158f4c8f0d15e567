"""The vectors of all collections packed to bytes, on disk, sorted by boundary; and the rows of which one is built.

The engine reads point by point, from all over its files: 200 take 20 ms the first time; one range of keys takes 0.5 ms.
The engine decides which points exist, and has their pooled vectors; token vectors are here alone. Unpacked vectors
equal the engine's (`packed_rows`); token vectors that are not quantised are left to the engine, with their boundary.

Guaranteed: a complete collection has a row, perhaps without vectors, for each point whose write returned.
"""

import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options, Rdict, ReadOptions, WriteBatch

from schemas.failures import Unavailable
from schemas.models.vectors import Point
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded.engine_errors import CountedCalls, is_lack, translate_engine_errors
from streams.adapters.vectors.embedded.packed_rows import PointRow, unpack_row

T = TypeVar("T")

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
        bounds = ReadOptions()
        bounds.set_iterate_lower_bound(prefix)
        bounds.set_iterate_upper_bound(prefix + _AFTER_KEYS)
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

    def find(self, space: VectorSpace, memory_ids: Sequence[str]) -> dict[str, PointRow | None]:
        """Return the rows of these points of any boundary, None for unpacked vectors; unknown ids are left out."""
        start = _key(_BOUNDARIES, space.collection)
        boundaries = self._get([start + memory_id.encode() for memory_id in memory_ids])
        known = [(one, boundary) for one, boundary in zip(memory_ids, boundaries, strict=True) if boundary is not None]
        rows = self._get([_row_prefix(space.collection, boundary) + one.encode() for one, boundary in known])
        return {
            memory_id: unpack_row(space.fingerprint, memory_id, row) if row else None
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


def _key(kind: bytes, name: str | bytes) -> bytes:
    """Return the start of the keys of this kind and name, and of no other keys."""
    data = name.encode() if isinstance(name, str) else name
    return kind + struct.pack(">I", len(data)) + data


def _row_prefix(collection: str, boundary: bytes) -> bytes:
    return _key(_key(_ROWS, collection), boundary)


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
