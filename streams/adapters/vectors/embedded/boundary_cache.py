"""Vectors of queried boundaries in memory, read from the packed rows; two LRU caches.

`BoundaryCache` has all vectors of small boundaries, read at the first question. Enters: questions by boundary, and what
is written or removed. Leaves: the vectors of a boundary, or None where the engine is to be asked: of more than
`MAX_CACHED_POINTS`, or with token vectors that can't be packed. That is remembered; a boundary's own points alone
decide it, so the memories of others never change how its queries are scored. Guaranteed: what is cached has every write
that came before.

`TokenCache` has tokens and passages that questions of large boundaries have read: reading takes a third of a question.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence

import numpy as np

from schemas.models.vectors import MemoryFilter, Nearest, Point
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded.boundary_vectors import NO_ROW, BoundaryVectors, TokenRows
from streams.adapters.vectors.embedded.edge_collections import EdgeCollections
from streams.adapters.vectors.embedded.maxsim import best_of
from streams.adapters.vectors.embedded.packed_vectors import POINT_PAGE_SIZE, PackedVectors, PointRow, Unpacked
from streams.adapters.vectors.embedded.text_columns import TextQuestion, TextScores
from streams.adapters.vectors.shared.vector_contract import validate_ids
from streams.batching import batches

MAX_CACHED_BYTES = 256 * 2**20
"""The limit of the cache: 70,000 short memories."""

MAX_CACHED_POINTS = 10_000
"""Most points of a boundary that is cached; larger ones are searched by the engine, 10 ms for 50,000. Reading that many
for the first time takes 0.5 s, or 1 s where page faults of memory-mapped files are slow."""

CollectionKey = tuple[str, str]
"""A collection, and a boundary or a memory in it."""

WrittenPoint = tuple[Point, Unpacked | None]
"""A written point, with its unpacked vectors; None if they can't be packed."""


class BoundaryCache:
    """Caches the boundaries of all collections of a process."""

    def __init__(self, max_bytes: int = MAX_CACHED_BYTES, max_points: int = MAX_CACHED_POINTS) -> None:
        self.max_points = max_points
        self.writes: Counter[str] = Counter()
        """The number of writes to each collection: a read during which it changed may be inconsistent."""
        self._max_bytes = max_bytes
        self._boundaries: OrderedDict[CollectionKey, BoundaryVectors | None] = OrderedDict()
        self._sizes: Counter[CollectionKey] = Counter()
        self._bytes = 0
        self._boundary_of: dict[CollectionKey, str] = {}
        """Of the memories of cached boundaries."""

    def has(self, key: CollectionKey) -> bool:
        """True if the boundary is cached, or known not to be cacheable."""
        return key in self._boundaries

    def get(self, key: CollectionKey) -> BoundaryVectors | None:
        """Return a known boundary's vectors; None if its queries go to the engine."""
        self._boundaries.move_to_end(key)
        return self._boundaries[key]

    def put(self, key: CollectionKey, vectors: BoundaryVectors | None) -> None:
        """Cache a boundary, or remember that it can't be cached."""
        self.drop(key)
        self._boundaries[key] = vectors
        if vectors is not None:
            self._boundary_of.update(((key[0], memory_id), key[1]) for memory_id in vectors.rows)
            self._resize(key, vectors)

    def written(self, collection: str, points: Iterable[WrittenPoint]) -> None:
        """Apply points that were written to the engine."""
        self.writes[collection] += 1
        for point, vectors in points:
            self._remove(collection, point.memory_id)
            key = collection, point.boundary
            cached = self._boundaries.get(key)
            if cached is None:
                continue
            if vectors is None:
                self.put(key, None)
                continue
            is_full = len(cached.rows) >= self.max_points
            cached.put([PointRow.of(point, vectors)])
            if is_full or cached.needs_compaction:
                # The next question reads it again, or finds that it has too many points.
                self.drop(key)
            else:
                self._boundary_of[collection, point.memory_id] = point.boundary
                self._resize(key, cached)

    def removed(self, collection: str, memory_ids: Iterable[str]) -> None:
        self.writes[collection] += 1
        for memory_id in memory_ids:
            self._remove(collection, memory_id)

    def drop(self, key: CollectionKey) -> None:
        """Drop a boundary; the next query reads it again."""
        vectors = self._boundaries.pop(key, None)
        self._bytes -= self._sizes.pop(key, 0)
        for memory_id in vectors.rows if vectors is not None else ():
            self._boundary_of.pop((key[0], memory_id), None)

    def drop_all(self, collection: str) -> None:
        """Drop a whole collection, after a write with an unknown outcome."""
        self.writes[collection] += 1
        for key in [key for key in self._boundaries if key[0] == collection]:
            self.drop(key)

    def drop_prefixed(self, prefix: str) -> None:
        """Drop all collections whose names begin with `prefix`: another process may write to them."""
        for collection in {key[0] for key in self._boundaries if key[0].startswith(prefix)}:
            self.drop_all(collection)

    def _remove(self, collection: str, memory_id: str) -> None:
        boundary = self._boundary_of.pop((collection, memory_id), None)
        cached = None if boundary is None else self._boundaries.get((collection, boundary))
        if cached is not None:
            cached.remove(memory_id)

    def _resize(self, key: CollectionKey, vectors: BoundaryVectors) -> None:
        self._bytes += vectors.size - self._sizes[key]
        self._sizes[key] = vectors.size
        while self._bytes > self._max_bytes and len(self._boundaries) > 1:
            oldest = next(iter(self._boundaries))
            self.drop(oldest)


class CachedBoundaries:
    """The part of the process's cache that is one index's own."""

    def __init__(self, cache: BoundaryCache, owner: str, collections: EdgeCollections) -> None:
        """`owner` distinguishes the index from others that share the cache."""
        self._cache = cache
        self._prefix = f"{owner}/"
        self._collections = collections
        self._reading = asyncio.Lock()

    async def of(self, space: VectorSpace, where: MemoryFilter) -> BoundaryVectors | None:
        """Return the boundary's vectors, reading them if needed; None if the query goes to the engine."""
        key = self._prefix + space.collection, where.boundary
        # A boundary needs no open collection: a question over many modes would open and close them all.
        if not self._collections.holds(space):
            return None
        while not self._cache.has(key):
            async with self._reading:
                if self._cache.has(key):
                    continue
                if not self._collections.packed.is_complete(space.collection):
                    # The engine sets the collection aside: its rows are lost.
                    self._collections.readable(space)
                    return None
                vectors = await self._read(space, where.boundary)
                # Not what was read of a partition that has left meanwhile: it would be found when that returns.
                self._collections.require_owned()
                self._cache.put(key, vectors)
        return self._cache.get(key)

    def written(self, space: VectorSpace, points: Sequence[WrittenPoint]) -> None:
        self._cache.written(self._prefix + space.collection, points)

    def removed(self, space: VectorSpace, memory_ids: Sequence[str]) -> None:
        self._cache.removed(self._prefix + space.collection, memory_ids)

    def drop(self, collection: str) -> None:
        """Drop a collection, after a write with an unknown outcome."""
        self._cache.drop_all(self._prefix + collection)

    def close(self) -> None:
        """Drop everything: another process may write to the partition from now on."""
        self._cache.drop_prefixed(self._prefix)

    async def _read(self, space: VectorSpace, boundary: str) -> BoundaryVectors | None:
        """Read all points of a boundary; None if they are too many, or one can't be packed."""
        packed, name = self._collections.packed, self._prefix + space.collection
        if packed.has_more(space, boundary, self._cache.max_points):
            return None
        for yields in (True, False):
            vectors, writes = BoundaryVectors(space.fingerprint), self._cache.writes[name]
            for page in batches(packed.of(space, boundary), POINT_PAGE_SIZE):
                rows = [row for _, row in page if row is not None]
                if len(rows) < len(page):
                    return None
                vectors.put(rows)
                if yields:
                    await asyncio.sleep(0)
            if writes == self._cache.writes[name]:
                break
            # A write came in between, perhaps to points that were read before: once more, without pauses.
        return vectors


MAX_TOKEN_BYTES = 160 * 2**20
"""The limit of the cache: 65,000 short memories. Beyond it, rows of a boundary that go are read again."""

CacheKey = tuple[str, str, str]
"""An index, a collection and a boundary."""


class KeptTokens:
    """Rows by boundary, the boundary that was asked longest ago out first.

    What the indexes of a process share, so that its partitions have one limit. Belongs to one event loop.
    """

    def __init__(self, max_bytes: int = MAX_TOKEN_BYTES) -> None:
        self.boundaries: OrderedDict[CacheKey, TokenRows] = OrderedDict()
        self._max_bytes = max_bytes

    @property
    def size(self) -> int:
        """The bytes of all rows, about."""
        return sum(rows.size for rows in self.boundaries.values())

    def of(self, key: CacheKey, space: VectorSpace) -> TokenRows:
        """Return the rows of a boundary, which is now the one that was asked last."""
        if key not in self.boundaries or self.boundaries[key].needs_compaction:
            self.boundaries[key] = TokenRows(space.fingerprint)
        self.boundaries.move_to_end(key)
        return self.boundaries[key]

    def drop(self, keys: Iterable[CacheKey]) -> None:
        for key in list(keys):
            del self.boundaries[key]

    def shrink(self) -> None:
        """Drop rows until the limit is kept: of the boundary that was asked last the older half at a time."""
        while self.size > self._max_bytes:
            key = next(iter(self.boundaries))
            if len(self.boundaries) > 1 or len(self.boundaries[key].rows) < 2:
                self.drop([key])
            else:
                self.boundaries[key] = self.boundaries[key].newer_half()


class TokenCache:
    """Tokens and passages of one index, by boundary.

    Enters: ids of memories, and what is written to the packed store. Leaves: scores of their rows, as the packed store
    has them. Guaranteed: a row that was written or removed since is read again; the bytes are bounded.
    """

    def __init__(self, packed: PackedVectors, kept: KeptTokens | None = None, owner: str = "") -> None:
        """`owner` distinguishes the index from others that share `kept`."""
        self._packed = packed
        self._kept = kept or KeptTokens()
        self._owner = owner

    def scores(
        self, space: VectorSpace, where: MemoryFilter, question: TextQuestion, memory_ids: Sequence[str]
    ) -> tuple[TextScores, list[str]]:
        """Return scores by the places of the ids that the filter admits, and the ids whose vectors are not packed.

        Each id comes once. Raises Unavailable, and ValueError for an id that is no UUID in canonical form.
        """
        rows = self._kept.of((self._owner, space.collection, where.boundary), space)
        row_of, unpacked = rows.rows_of(memory_ids), list[str]()
        if len(missing := np.flatnonzero(row_of == NO_ROW)):
            unknown = [memory_ids[number] for number in missing.tolist()]
            # In order: the store finds the rows faster.
            ordered = sorted(validate_ids(unknown))
            read = dict(zip(ordered, self._packed.rows(space, where.boundary, ordered), strict=True))
            rows.put_packed({memory_id: row for memory_id, row in read.items() if row})
            unpacked = [memory_id for memory_id, row in read.items() if row == b""]
            row_of[missing] = rows.rows_of(unknown)
        places = np.flatnonzero(row_of != NO_ROW)
        # In order of rows: they were added in the order of their keys, so neighbours are read together.
        places = places[np.argsort(row_of[places])]
        scored = rows.scores(question, where, row_of[places]).at(places)
        if len(missing):
            self._kept.shrink()
        return scored, unpacked

    def forget(self, collection: str, memory_ids: Iterable[str]) -> None:
        """Drop rows that were written or removed."""
        several = [rows for key in self._keys(collection) if (rows := self._kept.boundaries[key]).rows]
        for memory_id in memory_ids if several else ():
            for rows in several:
                rows.remove(memory_id)

    def drop(self, collection: str) -> None:
        """Drop all rows of a collection, after a write with an unknown outcome."""
        self._kept.drop(self._keys(collection))

    def close(self) -> None:
        """Drop all rows of the index."""
        self._kept.drop([key for key in self._kept.boundaries if key[0] == self._owner])

    def _keys(self, collection: str) -> list[CacheKey]:
        return [key for key in self._kept.boundaries if key[:2] == (self._owner, collection)]


async def score_rows(
    tokens: TokenCache, space: VectorSpace, question: TextQuestion, where: MemoryFilter, memory_ids: Sequence[str]
) -> tuple[Nearest, list[str]]:
    """Score packed texts page by page; also return the ids whose vectors are not packed.

    Each id comes once. The result's rows are places in `memory_ids`.
    """
    pages: list[TextScores] = []
    unpacked: list[str] = []
    for number, page in enumerate(batches(memory_ids, POINT_PAGE_SIZE)):
        scored, missing = tokens.scores(space, where, question, page)
        unpacked += missing
        pages.append(scored.at(number * POINT_PAGE_SIZE + np.arange(len(page))))
        await asyncio.sleep(0)
    joined = TextScores.joined(pages)
    return best_of(memory_ids, joined.rows, joined.scores, len(memory_ids), joined.passages), unpacked
