"""A collection of the embedded index: a Qdrant Edge shard in its directory.

Guaranteed: a directory under its final name is complete, whenever a kill comes; any error of the engine is
`Unavailable`; the file of counts, where there is one, holds the number of points of each partition.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self, TypeVar

import orjson
import qdrant_edge as edge

from schemas.failures import Unavailable
from schemas.models.vectors import Encoded, MemoryFilter, Point, Vector
from schemas.state.modes import Fingerprint
from streams.adapters.durable_files import fsync_path, write_durably
from streams.adapters.vectors.embedded.edge_failures import CallMark, CountedCalls, translate_engine_errors
from streams.adapters.vectors.shared import qdrant_payload as payload
from streams.adapters.vectors.shared.vector_contract import ScoredText

T = TypeVar("T")

FINGERPRINT_FILE, CONFIG_FILE, WAL_DIR = "fingerprint.json", "edge_config.json", "wal"
"""In a shard's directory: its fingerprint, and the engine's configuration and write-ahead log."""

FULL_SEGMENT_PREFIX = "closed-"
"""Starts the name of a full segment of the log."""

LOG_SEGMENT_BYTES = 512 * 1024
"""A segment of the log. The engine's 32 MiB make 64 MB of log for each collection and partition, however few its
memories."""

ENGINE_SETTINGS = {
    # Not eight: there are many modes and few cores.
    "max_search_threads": 1,
    # None is made in advance, and one full one is left by a flush.
    "wal_options": {"segment_capacity": LOG_SEGMENT_BYTES, "segment_queue_len": 0, "retain_closed": 1},
}
"""Fields of the engine's configuration."""

COUNTS_FILE = "counts.json"
"""In a closed shard's directory: its points by partition. Removed before the first write after an opening."""

MAX_PARTITIONS = 100_000
"""More partitions than a topic can have."""

STAGING_PREFIX = ".creating-"


class CollectionShard:
    """An open shard. Calls hold the GIL, so threads would gain nothing; keep calls short."""

    def __init__(self, path: Path, mark: CallMark) -> None:
        """Open an existing collection. The caller must own the root: a load beside its owner damages the data."""
        self._mark = mark
        self.calls = 0
        """Calls under way that span several steps of the event loop: the shard must stay open."""
        self._call = CountedCalls()
        self._full_segments: set[Path] = set()
        """Those of the log that are synced."""
        text = translate_engine_errors((path / FINGERPRINT_FILE).read_text)
        self.fingerprint = translate_engine_errors(lambda: Fingerprint.model_validate_json(text))
        self._path = path
        self._is_counted = (path / COUNTS_FILE).exists()
        self._shard = self._load()
        self._indexed = set(self.ask(lambda shard: shard.info().payload_schema))

    @classmethod
    def create(cls, path: Path, fingerprint: Fingerprint, mark: CallMark) -> Self:
        """Create an empty collection, with its indexes and fingerprint, under a temporary name first."""
        translate_engine_errors(lambda: make_collection(path, fingerprint))
        return cls(path, mark)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the shard open during a call of several steps."""
        self.calls += 1
        try:
            yield
        finally:
            self.calls -= 1

    def index(self, fields: Iterable[str]) -> None:
        for field in [field for field in fields if field not in self._indexed]:
            self.update(create_index_operation(field))
            self._indexed.add(field)

    def begin_write(self) -> None:
        """Remove the counts of the closed collection. Before anything is written that belongs to it."""
        if self._is_counted:
            translate_engine_errors(lambda: (self._path / COUNTS_FILE).unlink(missing_ok=True))
            translate_engine_errors(lambda: fsync_path(self._path))
            self._is_counted = False

    def update(self, operation: edge.UpdateOperation) -> None:
        """Apply a write. From then on it survives a kill of the process (write-ahead log), but no power cut."""
        self.begin_write()
        self._call(lambda: self._shard.update(operation))

    def ask(self, request: Callable[[edge.EdgeShard], T]) -> T:
        """Call a request that reads, and translate its errors. Damaged files may make the engine end the process."""
        with self._mark.calling(self._path.name):
            return self._call(lambda: request(self._shard))

    @property
    def is_failing(self) -> bool:
        """True if so many calls have failed that the files may be damaged."""
        return self._call.show_damage

    def count(self, partition: int) -> int:
        only = edge.Filter(must=[edge.FieldCondition(payload.PARTITION, match=edge.MatchValue(partition))])
        return self.ask(lambda engine: engine.count(edge.CountRequest(filter=only)))

    def counts(self) -> dict[int, int]:
        request = edge.FacetRequest(payload.PARTITION, limit=MAX_PARTITIONS, exact=True)
        return {int(hit.value): hit.count for hit in self.ask(lambda engine: engine.facet(request)).hits}

    def sync_log(self) -> None:
        """Sync the write-ahead log to the disk, so that all writes survive a power cut as well. May run in a thread.

        The engine's own flush does more, and holds the GIL meanwhile: 15 ms, or 100 on a busy disk.
        """
        translate_engine_errors(lambda: sync_log_files(self._path / WAL_DIR, self._full_segments))

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

    def close(self) -> bool:
        """Flush, note the counts and release the files; False if the collection is empty."""
        self.flush()
        counts = self.counts()
        if not self._is_counted:
            text = orjson.dumps(counts, option=orjson.OPT_NON_STR_KEYS).decode()
            translate_engine_errors(lambda: write_durably(self._path / COUNTS_FILE, text))
        self.ask(lambda shard: shard.close())
        return any(counts.values())

    def abandon(self) -> None:
        """Release the files without a flush: the log has the writes, and the shard fails."""
        with suppress(Unavailable):
            translate_engine_errors(self._shard.close)

    def _load(self) -> edge.EdgeShard:
        with self._mark.calling(self._path.name):
            return translate_engine_errors(lambda: load_shard(self._path))


def read_counts(path: Path) -> Mapping[int, int] | None:
    """Return the points by partition of a closed collection; None if it was not closed after the last write."""
    try:
        return {
            int(partition): int(count) for partition, count in orjson.loads((path / COUNTS_FILE).read_bytes()).items()
        }
    except (OSError, ValueError, AttributeError):
        return None


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
    edge.EdgeShard.create(str(path), edge.EdgeConfig(vectors=_edge_vector_params(fingerprint))).close()
    # The log of an empty shard, in segments of the default size.
    shutil.rmtree(path / WAL_DIR)
    shard = load_shard(path)
    for field in payload.indexed_fields(()):
        shard.update(create_index_operation(field))
    shard.flush()
    shard.close()


def load_shard(path: Path) -> edge.EdgeShard:
    """Open a shard with the vectors that it was made with, and our settings.

    These go into the engine's own file, as its calls take no settings of the log.
    """
    config = orjson.loads((path / CONFIG_FILE).read_bytes())
    if config | ENGINE_SETTINGS != config:
        write_durably(path / CONFIG_FILE, orjson.dumps(config | ENGINE_SETTINGS).decode())
    return edge.EdgeShard.load(str(path))


def _edge_vector_params(fingerprint: Fingerprint) -> edge.EdgeVectorParams | dict[str, edge.EdgeVectorParams]:
    pooled = edge.EdgeVectorParams(
        size=fingerprint.dim, distance=edge.Distance.Cosine, datatype=edge.VectorStorageDatatype.Float16
    )
    if payload.pooled_name(fingerprint) is None:
        return pooled
    if not fingerprint.token_dim:
        return {payload.POOLED: pooled}
    tokens = edge.EdgeVectorParams(
        size=fingerprint.token_dim,
        distance=edge.Distance.Dot,
        multivector_config=edge.MultiVectorConfig(edge.MultiVectorComparator.MaxSim),
        datatype=edge.VectorStorageDatatype.Float16,
    )
    return {payload.POOLED: pooled, payload.TOKENS: tokens}


def create_index_operation(field: str) -> edge.UpdateOperation:
    schemas: dict[str, edge.KeywordIndexParams | edge.IntegerIndexParams] = {
        payload.TENANT: edge.KeywordIndexParams(is_tenant=True),
        payload.PARTITION: edge.IntegerIndexParams(lookup=True, range=False),
        payload.TIME: edge.IntegerIndexParams(lookup=False, range=True),
    }
    return edge.UpdateOperation.create_field_index(field, schemas.get(field, edge.KeywordIndexParams()))


def sync_log_files(directory: Path, full: set[Path]) -> None:
    """Sync a log and its segments to the disk, including writes through memory maps.

    `full` has the full segments that were synced before, to which nothing is written any more. The engine may rename
    segments at any moment: repeat until the names stay the same.
    """
    synced: set[Path] = set()
    while (present := set(directory.iterdir())) != synced:
        for path in present - full:
            with suppress(FileNotFoundError):
                fsync_path(path)
        synced = present
    fsync_path(directory)
    full.clear()
    full.update(path for path in synced if path.name.startswith(FULL_SEGMENT_PREFIX))


EDGE_EXACT_SEARCH = edge.SearchParams(exact=True)
"""Ignore an HNSW graph, should a collection ever have one: it would be over the points of all users."""


def edge_point(fingerprint: Fingerprint, point: Point, *, with_tokens: bool = True) -> edge.Point:
    written = point if with_tokens else replace(point, tokens=None)
    return edge.Point(point.memory_id, payload.named_vectors(fingerprint, written), payload.payload_of(point))


def edge_filter(where: MemoryFilter, memory_ids: Sequence[str] | None) -> edge.Filter:
    """Return a filter in the engine's classes. Its ranges are floats, exact for the milliseconds of any date."""
    times = edge.RangeFloat(gte=where.since_ms, lt=where.until_ms)
    must = [
        edge.FieldCondition(field, match=edge.MatchAny(values)) for field, values in payload.match_values(where).items()
    ]
    timed = (
        [edge.FieldCondition(payload.TIME, range=times)]
        if where.since_ms is not None or where.until_ms is not None
        else []
    )
    return edge.Filter(must=[*must, *timed, *([] if memory_ids is None else [edge.HasIdCondition(set(memory_ids))])])


def score_query(
    query: edge.Query, admits: edge.Filter, limit: int, *, has_lengths: bool = False
) -> Callable[[edge.EdgeShard], list[ScoredText]]:
    """Request the best points and their scores, with the lengths of their vectors if they are asked for."""
    query_request = edge.QueryRequest(
        limit,
        query=query,
        filter=admits,
        params=EDGE_EXACT_SEARCH,
        with_payload=[payload.LENGTH] if has_lengths else False,
        with_vector=False,
    )
    return lambda engine: [
        ScoredText(str(point.id), point.score, length=(point.payload or {}).get(payload.LENGTH, 1.0))
        for point in engine.query(query_request)
    ]


def hash_query(memory_ids: Sequence[str]) -> Callable[[edge.EdgeShard], dict[str, str]]:
    def request(engine: edge.EdgeShard) -> dict[str, str]:
        records = engine.retrieve(list(memory_ids), [payload.HASH], with_vector=False)
        return {str(record.id): record.payload[payload.HASH] for record in records if record.payload}

    return request


def vector_query(fingerprint: Fingerprint, memory_ids: Sequence[str]) -> Callable[[edge.EdgeShard], dict[str, Encoded]]:
    def request(engine: edge.EdgeShard) -> dict[str, Encoded]:
        records = engine.retrieve(list(memory_ids), with_payload=False, with_vector=True)
        return {str(record.id): payload.decode_point_vectors(fingerprint, record.vector) for record in records}

    return request


def pooled_query(fingerprint: Fingerprint, memory_ids: Sequence[str]) -> Callable[[edge.EdgeShard], dict[str, Vector]]:
    name = payload.pooled_name(fingerprint)

    def request(engine: edge.EdgeShard) -> dict[str, Vector]:
        records = engine.retrieve(list(memory_ids), with_payload=False, with_vector=True if name is None else [name])
        return {str(record.id): payload.decode_pooled_vector(record.vector) for record in records}

    return request
