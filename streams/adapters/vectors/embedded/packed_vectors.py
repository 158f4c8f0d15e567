"""A collection's packed vectors on disk, sorted by boundary.

The engine reads payloads and vectors point by point, from all over its files: 200 take 20 ms the first time. Here they
are one range of keys, and take 0.5 ms. Enters: points with their bytes. Leaves: the rows of one boundary. Derived data:
the engine decides which points exist, and what is missing here is read from it.
"""

import json
import shutil
import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options, Rdict, ReadOptions, WriteBatch

from schemas.models.vectors import Point
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.embedded.edge_packing import FilterFields, PointRow, unpack_vectors

MEBIBYTE = 2**20

WRITE_BUFFER_BYTES = 4 * MEBIBYTE
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
