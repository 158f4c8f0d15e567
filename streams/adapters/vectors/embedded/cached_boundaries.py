"""The vectors of a partition's queried boundaries in memory, read from its stores at the first question.

Enters: questions by boundary, and what is written or removed. Leaves: the vectors of a boundary, of one with many
memories the pooled ones alone, or None where the engine is to be asked. Guaranteed: what is kept has every write that
came before.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from schemas.models.vectors import MemoryFilter
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded.background_reads import BackgroundReads
from streams.adapters.vectors.embedded.boundary_cache import BoundaryCache, Cached, WrittenPoint
from streams.adapters.vectors.embedded.boundary_reads import TooManyPoints, read_boundary, read_packed
from streams.adapters.vectors.embedded.boundary_vectors import BoundaryVectors
from streams.adapters.vectors.embedded.edge_collections import EdgeCollections
from streams.adapters.vectors.embedded.paced_opening import PacedOpening, UntilQuiet


class CachedBoundaries:
    """The part of the process's cache that is one index's own."""

    def __init__(
        self,
        cache: BoundaryCache,
        owner: str,
        collections: EdgeCollections,
        opening: PacedOpening,
        until_quiet: UntilQuiet,
    ) -> None:
        """`owner` distinguishes the index from others that share the cache."""
        self._cache = cache
        self._prefix = f"{owner}/"
        self._collections = collections
        self._packed = collections.packed
        self._opening = opening
        self._reading = asyncio.Lock()
        self._background = BackgroundReads(collections.packed, opening, cache.max_quantised, self._keep, until_quiet)

    async def of(self, space: VectorSpace, where: MemoryFilter) -> Cached | None:
        """Return the boundary's vectors, reading them if needed; None if the query goes to the engine."""
        key = self._prefix + space.collection, where.boundary
        # A boundary in memory needs no open collection.
        if not self._collections.holds(space):
            return None
        while not self._cache.has(key):
            async with self._reading:
                if self._background.has(space, where.boundary):
                    return None
                if not self._cache.has(key) and not await self._read(space, where.boundary):
                    return None
        return self._cache.get(key)

    def written(self, space: VectorSpace, points: Sequence[WrittenPoint]) -> None:
        """Apply points that were written to the engine."""
        self._cache.written(self._prefix + space.collection, points)
        self._background.written(space, [point for point, _ in points])

    def removed(self, space: VectorSpace, memory_ids: Sequence[str]) -> None:
        """Apply a deletion in the engine."""
        self._cache.removed(self._prefix + space.collection, memory_ids)
        self._background.removed(space, memory_ids)

    def drop(self, collection: str) -> None:
        """Drop a collection, after a write with an unknown outcome."""
        self._cache.drop_all(self._prefix + collection)
        self._background.cancel(collection)

    async def until_read(self) -> None:
        """Wait for the reads in the background."""
        await self._background.until_done()

    async def close(self) -> None:
        """Drop everything: another process may write to the partition from now on."""
        self._cache.drop_prefixed(self._prefix)
        await self._background.close()

    async def _read(self, space: VectorSpace, boundary: str) -> bool:
        """Read all points of a boundary into the cache, or begin to; False if the collection is gone."""
        try:
            if self._collections.is_at_rest(space):
                # Without the engine: a question over many modes would open and close their collections.
                read = partial(read_packed, self._packed, space, boundary, self._cache.max_points)
                self._keep(space, boundary, await self._unchanged(space, read))
                return True
            if (shard := await self._opening.readable(space)) is None:
                return False
            with shard.in_use():
                read = partial(read_boundary, shard, self._packed, space, boundary, self._cache.max_points)
                self._keep(space, boundary, await self._unchanged(space, read))
        except TooManyPoints:
            self._background.begin(space, boundary)
        return True

    def _keep(self, space: VectorSpace, boundary: str, vectors: Cached | None) -> None:
        # Not what was read of a partition that has left meanwhile: it would be found when that returns.
        self._collections.require_owned()
        self._cache.put((self._prefix + space.collection, boundary), vectors)

    async def _unchanged(
        self, space: VectorSpace, read: Callable[..., Awaitable[BoundaryVectors | None]]
    ) -> BoundaryVectors | None:
        """Read a boundary; None if it can't be cached. Raises TooManyPoints."""
        name = self._prefix + space.collection
        writes = self._cache.writes[name]
        vectors = await read(yields=True)
        if writes != self._cache.writes[name]:
            # A write came in between, perhaps to points that were read before.
            vectors = await read(yields=False)
        return vectors
