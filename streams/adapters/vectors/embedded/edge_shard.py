"""One collection of the embedded index on disk: a Qdrant Edge shard, its fingerprint and packed vectors beside it.

In go points and filters in Qdrant's classes; out come its answers. Guaranteed: a directory under its final name is
complete, so a kill at any moment leaves the collection or nothing of it; any error of the engine is `Unavailable`.
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
from schemas.modes import Fingerprint
from streams.adapters.durable_files import fsync_path, write_durably
from streams.adapters.vectors.embedded.packed_vectors import PackedVectors
from streams.adapters.vectors.shared.qdrant_payload import PARTITION, TENANT, TIME, indexed_fields
from streams.adapters.vectors.shared.qdrant_vectors import POOLED, TOKENS

T = TypeVar("T")

FINGERPRINT_FILE = "fingerprint.json"
"""The file in a shard's directory that says which vectors it holds."""

WAL_DIR = "wal"
"""The directory of the engine's write-ahead log in that of a shard."""

PACKED_DIR = "packed"
"""The directory of the packed vectors in that of a shard."""

STAGING_PREFIX = ".creating-"
"""Starts the name of a directory in which a shard is being made."""


class CollectionShard:
    """An open shard. Calls hold the interpreter, so threads would gain nothing; keep them short."""

    def __init__(self, path: Path) -> None:
        """Open an existing collection. The caller owns the directory above: a refused load damages its owner."""
        self.fingerprint = Fingerprint.model_validate_json((path / FINGERPRINT_FILE).read_text())
        self._path = path
        self._shard = self._load()
        self._indexed = set(self.ask(lambda shard: shard.info().payload_schema))
        self.packed = translate_engine_errors(lambda: PackedVectors(path / PACKED_DIR, self.fingerprint))

    @classmethod
    def create(cls, path: Path, fingerprint: Fingerprint) -> Self:
        """Make an empty collection, first under another name, with its indexes and its fingerprint."""
        translate_engine_errors(lambda: make_collection(path, fingerprint))
        return cls(path)

    def index(self, fields: Iterable[str]) -> None:
        """Index those payload fields that have no index yet."""
        for field in [field for field in fields if field not in self._indexed]:
            self.update(create_index_operation(field))
            self._indexed.add(field)

    def update(self, operation: UpdateOperation) -> None:
        """Apply a write. When it returns, it survives a kill of the process (write-ahead log), not a power cut."""
        self.ask(lambda shard: shard.update(operation))

    def ask(self, question: Callable[[EdgeShard], T]) -> T:
        """Put a question to the engine, whose errors are bare exceptions."""
        return translate_engine_errors(lambda: question(self._shard))

    async def sync_log(self) -> None:
        """Bring the log of all writes to the disk, so that they survive a power cut, too.

        The engine's own flush does more, and holds the interpreter all the while: 15 ms, or 100 on a busy disk.
        """
        await asyncio.to_thread(translate_engine_errors, self._sync_logs)

    def _sync_logs(self) -> None:
        # What is packed is on the disk before the engine says that the points are there.
        self.packed.sync()
        sync_files(self._path / WAL_DIR)

    def flush(self) -> None:
        """Bring every write into the segments and those to the disk.

        Once its files looked wrong to it, the engine never flushes again, though the log has all that was written:
        loading anew replays the log, and the second attempt counts.
        """
        try:
            self._shard.flush()
        except Exception:
            self.ask(lambda shard: shard.close())
            self._shard = self._load()
            self.ask(lambda shard: shard.flush())

    def close(self) -> None:
        """Flush and release the files."""
        self.flush()
        self.ask(lambda shard: shard.close())
        translate_engine_errors(self.packed.close)

    def _load(self) -> EdgeShard:
        return translate_engine_errors(lambda: EdgeShard.load(str(self._path), shard_config(self.fingerprint)))


def make_collection(path: Path, fingerprint: Fingerprint) -> None:
    """Make the directory of an empty collection; what a kill left of an earlier attempt is made anew."""
    unfinished = path.with_name(STAGING_PREFIX + path.name)
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    make_shard(unfinished, fingerprint)
    write_durably(unfinished / FINGERPRINT_FILE, fingerprint.model_dump_json())
    unfinished.rename(path)
    fsync_path(path.parent)


def make_shard(path: Path, fingerprint: Fingerprint) -> None:
    """Write an empty shard with the indexes that every collection has."""
    shard = EdgeShard.create(str(path), shard_config(fingerprint))
    for field in indexed_fields(()):
        shard.update(create_index_operation(field))
    shard.flush()
    shard.close()


def shard_config(fingerprint: Fingerprint) -> EdgeConfig:
    """Describe the vectors of a shard; one search thread each, not eight: modes are many, cores few."""
    return EdgeConfig(vectors=edge_vector_params(fingerprint), max_search_threads=1)


def edge_vector_params(fingerprint: Fingerprint) -> EdgeVectorParams | dict[str, EdgeVectorParams]:
    """Give the pooled vector's shape, and beside it that of the token vectors where the space keeps them."""
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
    """Give the operation that indexes a payload field as its use needs."""
    schemas: dict[str, KeywordIndexParams | IntegerIndexParams] = {
        TENANT: KeywordIndexParams(is_tenant=True),
        PARTITION: IntegerIndexParams(lookup=True, range=False),
        TIME: IntegerIndexParams(lookup=False, range=True),
    }
    return UpdateOperation.create_field_index(field, schemas.get(field, KeywordIndexParams()))


def translate_engine_errors(call: Callable[[], T]) -> T:
    """Make `Unavailable` of any error of the engine or the disk; arguments were checked before."""
    try:
        return call()
    except Exception as error:
        raise Unavailable(f"the embedded vector index failed: {error}") from error


def sync_files(directory: Path) -> None:
    """Bring a directory and the files in it to the disk, what is written through memory maps included.

    The engine renames the parts of its log at any moment: as long as the names change, all are gone through again.
    """
    synced: set[Path] = set()
    while (present := set(directory.iterdir())) != synced:
        for path in present:
            with suppress(FileNotFoundError):
                fsync_path(path)
        synced = present
    fsync_path(directory)
