"""An LRU cache of boundaries' vectors in memory; writes to the engine are reported here, so the cache equals it.

A boundary that can't be cached is remembered as such; its own points alone decide that, so the memories of other
boundaries never change how its queries are scored.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable

from schemas.models.vectors import Point
from streams.adapters.vectors.embedded.boundary_vectors import BoundaryVectors
from streams.adapters.vectors.embedded.packed_rows import PointRow, Unpacked
from streams.adapters.vectors.embedded.quantised_vectors import PooledRow, QuantisedVectors

MAX_CACHED_BYTES = 256 * 2**20
"""The limit of the cache: 70,000 short memories."""

MAX_CACHED_POINTS = 10_000
"""Most points of a boundary that is cached with its token vectors, which a question waits for. Reading that many for
the first time takes 0.5 s, or 1 s where page faults of memory-mapped files are slow."""

MAX_QUANTISED_POINTS = 150_000
"""Most points of a boundary of which pooled vectors alone are cached, read beside questions: nearly all of the limit.
Larger ones are queried in the engine."""

Cached = BoundaryVectors | QuantisedVectors

CollectionKey = tuple[str, str]
"""A collection, and a boundary or a memory in it."""

WrittenPoint = tuple[Point, Unpacked | None]
"""A written point, with its unpacked vectors; None if they can't be packed."""


class BoundaryCache:
    """Caches the boundaries of all collections of a process."""

    def __init__(
        self,
        max_bytes: int = MAX_CACHED_BYTES,
        max_points: int = MAX_CACHED_POINTS,
        max_quantised: int = MAX_QUANTISED_POINTS,
    ) -> None:
        self.max_points = max_points
        self.max_quantised = max_quantised
        self.writes: Counter[str] = Counter()
        """The number of writes to each collection: a read during which it changed may be inconsistent."""
        self._max_bytes = max_bytes
        self._boundaries: OrderedDict[CollectionKey, Cached | None] = OrderedDict()
        self._sizes: Counter[CollectionKey] = Counter()
        self._bytes = 0
        self._boundary_of: dict[CollectionKey, str] = {}
        """Of memories of small boundaries: to note it of many at once would stop others for tens of milliseconds."""
        self._quantised: dict[CollectionKey, QuantisedVectors] = {}
        """The boundaries with many memories: few, so a removal looks into all of a collection."""

    def has(self, key: CollectionKey) -> bool:
        """True if the boundary is cached, or known not to be cacheable."""
        return key in self._boundaries

    def get(self, key: CollectionKey) -> Cached | None:
        """Return a known boundary's vectors; None if its queries go to the engine."""
        self._boundaries.move_to_end(key)
        return self._boundaries[key]

    def put(self, key: CollectionKey, vectors: Cached | None) -> None:
        """Cache a boundary, or remember that it can't be cached."""
        self.drop(key)
        self._boundaries[key] = vectors
        if isinstance(vectors, QuantisedVectors):
            self._quantised[key] = vectors
        elif vectors is not None:
            self._boundary_of.update(((key[0], memory_id), key[1]) for memory_id in vectors.rows)
        if vectors is not None:
            self._resize(key, vectors)

    def written(self, collection: str, points: Iterable[WrittenPoint]) -> None:
        """Apply points that were written to the engine."""
        self.writes[collection] += 1
        for point, vectors in points:
            self._remove(collection, point.memory_id)
            key = collection, point.boundary
            cached = self._boundaries.get(key)
            if cached is not None:
                self._update(key, cached, point, vectors)

    def removed(self, collection: str, memory_ids: Iterable[str]) -> None:
        """Apply a deletion in the engine."""
        self.writes[collection] += 1
        for memory_id in memory_ids:
            self._remove(collection, memory_id)

    def drop(self, key: CollectionKey) -> None:
        """Drop a boundary; the next query reads it again."""
        vectors = self._boundaries.pop(key, None)
        self._bytes -= self._sizes.pop(key, 0)
        if self._quantised.pop(key, None) is not None:
            return
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

    def _update(self, key: CollectionKey, cached: Cached, point: Point, vectors: Unpacked | None) -> None:
        if isinstance(cached, QuantisedVectors):
            is_full, can_hold = len(cached.rows) >= self.max_quantised, True
            cached.put([PooledRow.of(point)])
        else:
            is_full, can_hold = len(cached.rows) >= self.max_points, vectors is not None
            if vectors is not None:
                cached.put([PointRow.of(point, vectors)])
        if not can_hold:
            self.put(key, None)
        elif is_full or cached.needs_compaction:
            # The next question reads it again, in the form for as many.
            self.drop(key)
        else:
            if key not in self._quantised:
                self._boundary_of[key[0], point.memory_id] = key[1]
            self._resize(key, cached)

    def _remove(self, collection: str, memory_id: str) -> None:
        boundary = self._boundary_of.pop((collection, memory_id), None)
        cached = None if boundary is None else self._boundaries.get((collection, boundary))
        if cached is not None:
            cached.remove(memory_id)
        for key, vectors in self._quantised.items():
            if key[0] == collection:
                vectors.remove(memory_id)

    def _resize(self, key: CollectionKey, vectors: Cached) -> None:
        self._bytes += vectors.size - self._sizes[key]
        self._sizes[key] = vectors.size
        while self._bytes > self._max_bytes and len(self._boundaries) > 1:
            oldest = next(iter(self._boundaries))
            self.drop(oldest)
