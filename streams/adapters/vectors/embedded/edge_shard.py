"""The collections of the embedded index: Qdrant Edge shards, each in its directory, under a root with one owner.

Guaranteed: shards are open only while this process owns the root; a shard with another fingerprint than the space is
refused; a directory under its final name is complete, whenever a kill comes; any error of the engine is `Unavailable`.
"""

import asyncio
import fcntl
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self, TypeVar

import qdrant_edge as edge

from schemas.failures import Unavailable
from schemas.models.vectors import Point
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.durable_files import fsync_path, write_durably
from streams.adapters.vectors.embedded.packed_vectors import PackedVectors
from streams.adapters.vectors.shared import qdrant_payload as payload
from streams.adapters.vectors.shared.vector_contract import check_fingerprint

T = TypeVar("T")

FINGERPRINT_FILE, WAL_DIR, PACKED_DIR = "fingerprint.json", "wal", "packed"
"""In a shard's directory: its fingerprint, the engine's write-ahead log, the packed vectors."""

STAGING_PREFIX = ".creating-"


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

    def update(self, operation: edge.UpdateOperation) -> None:
        """Apply a write. From then on it survives a kill of the process (write-ahead log), but no power cut."""
        self.ask(lambda shard: shard.update(operation))

    def ask(self, request: Callable[[edge.EdgeShard], T]) -> T:
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

    def _load(self) -> edge.EdgeShard:
        return translate_engine_errors(lambda: edge.EdgeShard.load(str(self._path), shard_config(self.fingerprint)))


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
    shard = edge.EdgeShard.create(str(path), shard_config(fingerprint))
    for field in payload.indexed_fields(()):
        shard.update(create_index_operation(field))
    shard.flush()
    shard.close()


def shard_config(fingerprint: Fingerprint) -> edge.EdgeConfig:
    """Return the configuration of a shard: one search thread, not eight, as there are many modes and few cores."""
    return edge.EdgeConfig(vectors=_edge_vector_params(fingerprint), max_search_threads=1)


def _edge_vector_params(fingerprint: Fingerprint) -> edge.EdgeVectorParams | dict[str, edge.EdgeVectorParams]:
    pooled = edge.EdgeVectorParams(size=fingerprint.dim, distance=edge.Distance.Cosine)
    if not fingerprint.token_dim:
        return pooled
    tokens = edge.EdgeVectorParams(
        size=fingerprint.token_dim,
        distance=edge.Distance.Dot,
        multivector_config=edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim),
        datatype=edge.VectorStorageDatatype.Float16,
    )
    return {payload.POOLED: pooled, payload.TOKENS: tokens}


def create_index_operation(field: str) -> edge.UpdateOperation:
    """Return the operation that creates a payload field's index."""
    schemas: dict[str, edge.KeywordIndexParams | edge.IntegerIndexParams] = {
        payload.TENANT: edge.KeywordIndexParams(is_tenant=True),
        payload.PARTITION: edge.IntegerIndexParams(lookup=True, range=False),
        payload.TIME: edge.IntegerIndexParams(lookup=False, range=True),
    }
    return edge.UpdateOperation.create_field_index(field, schemas.get(field, edge.KeywordIndexParams()))


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


OWNER_LOCK_FILE = ".owner.lock"
"""The file in the root that the owner locks. The kernel releases the lock with the process."""


class EdgeCollections:
    """The shards under one root directory, opened at the first use."""

    def __init__(self, root: Path) -> None:
        """Lock the directory. Raises RuntimeError if another process owns it."""
        root.mkdir(parents=True, exist_ok=True)
        self._root = root
        self._lock = (root / OWNER_LOCK_FILE).open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._lock.close()
            raise RuntimeError(f"another process owns the vector index in {root}") from error
        self._shards: dict[str, CollectionShard] = {}

    def readable(self, space: VectorSpace) -> CollectionShard | None:
        """Return the collection, None if it does not exist. Raises ValueError for another fingerprint."""
        if self._lock.closed:
            # Another process may own the shard by now; opening it would damage it.
            raise RuntimeError(f"the vector index in {self._root} is closed")
        name = space.collection
        if name not in self._shards:
            if not (self._root / name).exists():
                return None
            self._shards[name] = CollectionShard(self._root / name)
        check_fingerprint(space, self._shards[name].fingerprint)
        return self._shards[name]

    def writable(self, space: VectorSpace, points: Sequence[Point]) -> CollectionShard:
        """Return a collection that is ready for these points: created, indexed, with its alias."""
        shard = self.readable(space) or self._create(space)
        shard.index(payload.indexed_fields(points))
        return shard

    def fingerprints(self) -> Mapping[str, Fingerprint]:
        """Return the fingerprints of the existing collections, by name."""
        files = self._root.glob(f"[!.]*/{FINGERPRINT_FILE}")
        return {file.parent.name: Fingerprint.model_validate_json(file.read_text()) for file in files}

    def close(self) -> None:
        """Flush and close every shard, then release the directory."""
        try:
            while self._shards:
                self._shards.popitem()[1].close()
        finally:
            self._lock.close()

    def _create(self, space: VectorSpace) -> CollectionShard:
        # The alias first: after a kill in between, the repeated write creates the collection that it names.
        translate_engine_errors(lambda: write_durably(self._root / payload.alias_name(space.mode), space.collection))
        shard = CollectionShard.create(self._root / space.collection, space.fingerprint)
        self._shards[space.collection] = shard
        return shard
