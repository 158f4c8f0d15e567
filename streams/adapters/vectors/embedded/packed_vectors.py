"""A collection's packed vectors on disk, those of a boundary side by side.

The engine gives out payloads and vectors point by point, from all over its files: 200 take 20 ms the first time.
From this store they are one range of keys, and take half a millisecond. In go points with their bytes; out come rows of
one boundary. Derived: the engine says which points there are, and what is missing here is read from there.
"""

import json
import shutil
import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from rocksdict import (
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    Options,
    Rdict,
    ReadOptions,
    WriteBatch,
)

from schemas.modes import Fingerprint
from schemas.vectors import Point
from streams.adapters.vectors.embedded.edge_packing import unpack_vectors
from streams.adapters.vectors.embedded.edge_rows import FilterFields, PointRow

MEBIBYTE = 2**20

WRITE_BUFFER_BYTES = 4 * MEBIBYTE
"""What waits in memory until it is sorted into a file: a thousand short memories."""

BLOCK_BYTES = 16 * 1024
"""What is read at once: four short memories."""

BLOOM_BITS = 10
"""Bits a key, by which an id that is not there is known in 99 of 100 files without reading them (RocksDB's wiki)."""

_HEAD = struct.Struct("<qH")
"""A row begins with its time and the length of its kind as JSON."""

_VECTORS, _HOMES = b"v", b"h"
"""First bytes of keys: rows by boundary and id, boundaries by id."""


class PackedVectors:
    """An open store. What a call wrote survives a kill of the process; not a power cut before its log is synced."""

    def __init__(self, directory: Path, fingerprint: Fingerprint) -> None:
        """Open the store; one that is broken is begun anew."""
        self._fingerprint = fingerprint
        try:
            self._store = Rdict(str(directory), _options())
        except Exception:
            shutil.rmtree(directory, ignore_errors=True)
            self._store = Rdict(str(directory), _options())

    def put(self, points: Iterable[tuple[Point, bytes | None]]) -> None:
        """Write points over those of the same ids; one without bytes is removed."""
        batch = WriteBatch(raw_mode=True)
        for point, data in points:
            self._remove(batch, point.memory_id)
            if data is not None:
                boundary = point.boundary.encode()
                batch.put(_prefix(boundary) + point.memory_id.encode(), _head(point) + data)
                batch.put(_HOMES + point.memory_id.encode(), boundary)
        self._store.write(batch)

    def remove(self, memory_ids: Iterable[str]) -> None:
        """Let points go; unknown ids are ignored."""
        batch = WriteBatch(raw_mode=True)
        for memory_id in memory_ids:
            self._remove(batch, memory_id)
        self._store.write(batch)

    def of(self, boundary: str) -> Iterator[PointRow]:
        """All rows of a boundary, as they are at the first one, by id."""
        prefix = _prefix(boundary.encode())
        span = ReadOptions()
        span.set_iterate_lower_bound(prefix)
        span.set_iterate_upper_bound(prefix + b"\xff")
        rows: Any = self._store.items(from_key=prefix, read_opt=span)
        for key, value in rows:
            yield self._row(key[len(prefix) :].decode(), value)

    def sync(self) -> None:
        """Bring what was written to the disk. Safe in another thread than the writes."""
        self._store.flush_wal(sync=True)

    def close(self) -> None:
        """Write what waits, and release the files."""
        self._store.close()

    def _remove(self, batch: WriteBatch, memory_id: str) -> None:
        home = self._store.get(_HOMES + memory_id.encode())
        if home is not None:
            batch.delete(_prefix(home) + memory_id.encode())
            batch.delete(_HOMES + memory_id.encode())

    def _row(self, memory_id: str, value: bytes) -> PointRow:
        occurred_ms, length = _HEAD.unpack_from(value)
        start = _HEAD.size + length
        kind = _kind(value[_HEAD.size : start])
        return PointRow(memory_id, kind, occurred_ms, unpack_vectors(self._fingerprint, value, start))


def _prefix(boundary: bytes) -> bytes:
    """What all keys of a boundary begin with, and no other key."""
    return _VECTORS + struct.pack(">I", len(boundary)) + boundary


def _head(point: Point) -> bytes:
    kind = json.dumps([point.mode, point.type, dict(sorted(point.scope.items()))]).encode()
    return _HEAD.pack(point.occurred_ms, len(kind)) + kind


@lru_cache(1024)
def _kind(data: bytes) -> FilterFields:
    return FilterFields.of(*json.loads(data))


def _options() -> Options:
    blocks = BlockBasedOptions()
    blocks.set_block_size(BLOCK_BYTES)
    blocks.set_bloom_filter(BLOOM_BITS, block_based=False)
    # A boundary's vectors are held by whoever asked for them: nothing is read twice soon.
    blocks.set_block_cache(Cache(WRITE_BUFFER_BYTES))
    options = Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    options.set_write_buffer_size(WRITE_BUFFER_BYTES)
    options.set_compression_type(DBCompressionType.none())
    options.set_keep_log_file_num(1)
    return options
