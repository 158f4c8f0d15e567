"""One collection of the embedded index on disk: a Qdrant Edge shard, with its fingerprint and packed vectors.

Enters: operations and requests in Qdrant's classes. Leaves: its responses. Guaranteed: a directory under its final name
is complete, so a kill at any moment leaves the collection or nothing; any error of the engine is `Unavailable`.
"""

import asyncio
import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeVectorParams,
    IntegerIndexParams,
    KeywordIndexParams,
    MultiVectorComparator,
    MultiVectorConfig,
    UpdateOperation,
    VectorStorageDatatype,
)

from schemas.failures import Unavailable
from schemas.state.modes import Fingerprint
from streams.adapters.durable_files import fsync_path, write_durably
from streams.adapters.vectors.embedded.packed_vectors import PackedVectors
from streams.adapters.vectors.shared.qdrant_payload import PARTITION, TENANT, TIME, indexed_fields
from streams.adapters.vectors.shared.qdrant_vectors import POOLED, TOKENS

T = TypeVar("T")

FINGERPRINT_FILE = "fingerprint.json"
"""The file with the fingerprint in a shard's directory."""

WAL_DIR = "wal"
"""The directory of the engine's write-ahead log in a shard's directory."""

PACKED_DIR = "packed"
"""The directory of the packed vectors in a shard's directory."""

STAGING_PREFIX = ".creating-"
"""Starts the name of the directory of a shard while it is created."""


class CollectionShard:
    """An open shard. Calls hold the GIL, so threads would gain nothing; keep calls short."""

    def __init__(self, path: Path) -> None:
        """Open an existing collection. The caller must own the root: a load beside its owner damages the data."""
        self.fingerprint = Fingerprint.model_validate_json((path / FINGERPRINT_FILE).read_text())
        self._path = path
        self._shard = self._load()
        self._indexed = set(self.ask(lambda shard: shard.info().payload_schema))
        self.packed = translate_engine_errors(lambda: PackedVectors(path / PACKED_DIR, self.fingerprint))

    @classmethod
    def create(cls, path: Path, fingerprint: Fingerprint) -> Self:
        """Create an empty collection, with its indexes and fingerprint, under a temporary name first."""
        translate_engine_errors(lambda: make_collection(path, fingerprint))
        return cls(path)

    def index(self, fields: Iterable[str]) -> None:
        """Create the missing indexes of these payload fields."""
        for field in [field for field in fields if field not in self._indexed]:
            self.update(create_index_operation(field))
            self._indexed.add(field)

    def update(self, operation: UpdateOperation) -> None:
        """Apply a write. From then on it survives a kill of the process (write-ahead log), but no power cut."""
        self.ask(lambda shard: shard.update(operation))

    def ask(self, request: Callable[[EdgeShard], T]) -> T:
        """Call a request with the engine, and translate its errors."""
        return translate_engine_errors(lambda: request(self._shard))

    async def sync_log(self) -> None:
        """Sync the write-ahead logs to the disk, so that all writes survive a power cut as well.

        The engine's own flush does more, and holds the GIL meanwhile: 15 ms, or 100 on a busy disk.
        """
        await asyncio.to_thread(translate_engine_errors, self._sync_logs)

    def _sync_logs(self) -> None:
        # The packed vectors first: they must be on the disk before the engine's points are.
        self.packed.sync()
        sync_files(self._path / WAL_DIR)

    def flush(self) -> None:
        """Write everything to the segments, and these to the disk.

        After an error in its files the engine never flushes again, though its log is complete: reload the shard, which
        replays the log, and flush again.
        """
        try:
            self._shard.flush()
        except Exception:
            self.ask(lambda shard: shard.close())
            self._shard = self._load()
            self.ask(lambda shard: shard.flush())

    def close(self) -> None:
        """Flush, and release the files."""
        self.flush()
        self.ask(lambda shard: shard.close())
        translate_engine_errors(self.packed.close)

    def _load(self) -> EdgeShard:
        return translate_engine_errors(lambda: EdgeShard.load(str(self._path), shard_config(self.fingerprint)))


def make_collection(path: Path, fingerprint: Fingerprint) -> None:
    """Create the directory of an empty collection, after removing what a killed attempt left."""
    staging = path.with_name(STAGING_PREFIX + path.name)
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    make_shard(staging, fingerprint)
    write_durably(staging / FINGERPRINT_FILE, fingerprint.model_dump_json())
    staging.rename(path)
    fsync_path(path.parent)


def make_shard(path: Path, fingerprint: Fingerprint) -> None:
    """Write an empty shard with the indexes of every collection."""
    shard = EdgeShard.create(str(path), shard_config(fingerprint))
    for field in indexed_fields(()):
        shard.update(create_index_operation(field))
    shard.flush()
    shard.close()


def shard_config(fingerprint: Fingerprint) -> EdgeConfig:
    """Return the configuration of a shard: one search thread, not eight, as there are many modes and few cores."""
    return EdgeConfig(vectors=edge_vector_params(fingerprint), max_search_threads=1)


def edge_vector_params(fingerprint: Fingerprint) -> EdgeVectorParams | dict[str, EdgeVectorParams]:
    """Return the parameters of the pooled vector and, if the space has them, of the token vectors."""
    pooled = EdgeVectorParams(size=fingerprint.dim, distance=Distance.Cosine)
    if not fingerprint.token_dim:
        return pooled
    tokens = EdgeVectorParams(
        size=fingerprint.token_dim,
        distance=Distance.Dot,
        multivector_config=MultiVectorConfig(MultiVectorComparator.MaxSim),
        datatype=VectorStorageDatatype.Float16,
    )
    return {POOLED: pooled, TOKENS: tokens}


def create_index_operation(field: str) -> UpdateOperation:
    """Return the operation that creates a payload field's index."""
    schemas: dict[str, KeywordIndexParams | IntegerIndexParams] = {
        TENANT: KeywordIndexParams(is_tenant=True),
        PARTITION: IntegerIndexParams(lookup=True, range=False),
        TIME: IntegerIndexParams(lookup=False, range=True),
    }
    return UpdateOperation.create_field_index(field, schemas.get(field, KeywordIndexParams()))


def translate_engine_errors(call: Callable[[], T]) -> T:
    """Raise any error of the engine or the disk as `Unavailable`; arguments were validated before."""
    try:
        return call()
    except Exception as error:
        raise Unavailable(f"the embedded vector index failed: {error}") from error


def sync_files(directory: Path) -> None:
    """Sync a directory and its files to the disk, including writes through memory maps.

    The engine may rename the segments of its log at any moment: repeat until the names stay the same.
    """
    synced: set[Path] = set()
    while (present := set(directory.iterdir())) != synced:
        for path in present:
            with suppress(FileNotFoundError):
                fsync_path(path)
        synced = present
    fsync_path(directory)
