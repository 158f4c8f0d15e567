"""The vector index in this process: Qdrant Edge, one shard directory a collection under one root directory.

In go points and questions of the port; out come scored ids. Guaranteed: one owner of the root (`edge_collections`),
and what a returned write wrote survives `kill -9` and a power cut. There is no optimising: it would hold the
interpreter for seconds, and filtered searches are exact and fast without.

The engine is what is true, and what is asked for most things. The vectors of boundaries that questions are about are
held beside it (`edge_held`), as it takes 5 ms to give out 500 ids, and 25 to compare 900 memories token by token.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from qdrant_edge import CountRequest, FieldCondition, Filter, MatchValue, Query, UpdateOperation

from schemas.modes import Fingerprint, VectorSpace
from schemas.vectors import Encoded, Matrix, MemoryFilter, Point, Scored, Vector
from streams.adapters.vectors.embedded.boundary_reading import read_boundary
from streams.adapters.vectors.embedded.edge_boundary import BoundaryVectors
from streams.adapters.vectors.embedded.edge_collections import EdgeCollections
from streams.adapters.vectors.embedded.edge_held import BoundaryCache
from streams.adapters.vectors.embedded.edge_packing import pack_point, unpack_vectors
from streams.adapters.vectors.embedded.edge_requests import (
    edge_filter,
    edge_point,
    hash_query,
    score_query,
    vector_query,
)
from streams.adapters.vectors.embedded.edge_shard import CollectionShard, translate_engine_errors
from streams.adapters.vectors.shared.qdrant_payload import PARTITION, admits_none
from streams.adapters.vectors.shared.qdrant_vectors import TOKENS, pooled_name
from streams.adapters.vectors.shared.vector_contract import (
    POINT_BATCH_SIZE,
    VECTOR_BATCH_SIZE,
    check_rows,
    check_vector,
    count_token_rows,
    fetch_nearest,
    sort_by_cosine,
    sort_by_score,
    validate_ids,
    validate_points,
    write_batches,
)
from streams.batching import batches

MAX_UNFLUSHED_WRITES = 4096
"""Writes of one collection between two flushes of its segments, which hold the interpreter for 30 ms, or 300 on a busy
disk. It keeps the log short: with the tokens of short texts 65 MB, read again in a second after a kill."""

TYPICAL_TOKEN_ROWS = 16
"""Token vectors of a typical turn. A longer text counts as so many writes more as it has times these."""


class EdgeIndex:
    """`VectorIndex` on Qdrant Edge."""

    def __init__(self, root: Path, held: BoundaryCache | None = None) -> None:
        """Take the directory. Raises RuntimeError when another process has it."""
        self._collections = EdgeCollections(root)
        self._unflushed: dict[str, int] = {}
        self._held = held or BoundaryCache()
        self._reading = asyncio.Lock()

    async def upsert(self, space: VectorSpace, points: Sequence[Point]) -> None:
        """Write points, in batches that let others run between them."""
        fresh = validate_points(space, points)
        if not fresh:
            return
        shard = self._collections.writable(space, fresh)
        for batch in write_batches(fresh):
            self._upserted(shard, space, batch)
            await asyncio.sleep(0)
        await self._written(shard, space, max(len(fresh), sum(map(count_token_rows, fresh)) // TYPICAL_TOKEN_ROWS))

    async def delete(self, space: VectorSpace, memory_ids: Sequence[str]) -> None:
        """Remove points; unknown ids are ignored."""
        known = validate_ids(memory_ids)
        if not known or (shard := self._collections.readable(space)) is None:
            return
        for batch in batches(known, POINT_BATCH_SIZE):
            # Packed first: killed in between, there is a row too few, which is read from the engine, and none too many.
            translate_engine_errors(partial(shard.packed.remove, batch))
            self._changed(shard, space, UpdateOperation.delete_points(list(batch)))
            self._held.removed(space.collection, batch)
            await asyncio.sleep(0)
        await self._written(shard, space, len(known))

    async def search(self, space: VectorSpace, vector: Vector, where: MemoryFilter, limit: int) -> list[Scored]:
        """The nearest points that `where` admits: exact, best first, equal ones by id."""
        check_vector(space, vector)
        if (held := await self._boundary(space, where)) is not None:
            return held.nearest(vector, where, limit)
        query = Query.Nearest(vector.tolist(), using=pooled_name(space.fingerprint))

        async def fetch(count: int) -> list[Scored]:
            return sort_by_cosine(self._found(space, query, where, count))

        return await fetch_nearest(fetch, limit)

    async def maxsim(
        self,
        space: VectorSpace,
        question: Matrix,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> list[Scored]:
        """Late interaction, exact: over all that `where` admits, or over these memories as far as it admits them."""
        check_rows(space, question)
        if not len(question) or (memory_ids is not None and not memory_ids):
            return []
        if (held := await self._boundary(space, where)) is not None:
            # What is held was checked when it was written.
            validate_ids([one for one in memory_ids or () if one not in held.rows])
            return held.maxsim(question, where, limit, memory_ids)
        known = None if memory_ids is None else validate_ids(memory_ids)
        query = Query.Nearest(question.tolist(), using=TOKENS)

        async def fetch(count: int) -> list[Scored]:
            return sort_by_score(self._found(space, query, where, count, known))

        return await fetch_nearest(fetch, limit)

    async def hashes(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, str]:
        """The content hash of each of these memories' points, for those that have one."""
        known = validate_ids(memory_ids)
        kept: dict[str, str] = {}
        if (shard := self._collections.readable(space)) is None:
            return kept
        for batch in batches(known, POINT_BATCH_SIZE):
            kept |= shard.ask(hash_query(batch))
            await asyncio.sleep(0)
        return kept

    async def vectors(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Encoded]:
        """The vectors of these memories' points, the pooled ones of length 1 as a cosine index keeps them."""
        known = validate_ids(memory_ids)
        kept: dict[str, Encoded] = {}
        if (shard := self._collections.readable(space)) is None:
            return kept
        for batch in batches(known, VECTOR_BATCH_SIZE):
            kept |= shard.ask(vector_query(space.fingerprint, batch))
            await asyncio.sleep(0)
        return kept

    async def count(self, space: VectorSpace, partition: int) -> int:
        """How many points a partition has in this space."""
        if (shard := self._collections.readable(space)) is None:
            return 0
        request = CountRequest(filter=Filter(must=[FieldCondition(PARTITION, match=MatchValue(partition))]))
        return shard.ask(lambda engine: engine.count(request))

    async def spaces(self) -> Mapping[str, Fingerprint]:
        """The collections that exist, by name, with the fingerprint that is kept in each."""
        return self._collections.fingerprints()

    async def close(self) -> None:
        """Flush and close every shard, then let the directory go."""
        self._collections.close()

    def _found(
        self, space: VectorSpace, query: Query, where: MemoryFilter, limit: int, memory_ids: Sequence[str] | None = None
    ) -> list[tuple[object, float]]:
        if admits_none(where) or (shard := self._collections.readable(space)) is None:
            return []
        return shard.ask(score_query(query, edge_filter(where, memory_ids), limit))

    async def _boundary(self, space: VectorSpace, where: MemoryFilter) -> BoundaryVectors | None:
        """The vectors of the boundary, read where they are not held; None where the engine is to be asked."""
        place = space.collection, where.boundary
        shard = self._collections.readable(space)
        while shard is not None and not self._held.knows(place):
            async with self._reading:
                if not self._held.knows(place):
                    self._held.keep(place, await self._read(shard, space, where.boundary))
        return None if shard is None else self._held.get(place)

    async def _read(self, shard: CollectionShard, space: VectorSpace, boundary: str) -> BoundaryVectors | None:
        """All points of a boundary; None where they can't be held."""
        writes, most = self._held.writes[space.collection], self._held.most_points
        vectors = await read_boundary(shard, boundary, most, yields=True)
        if writes != self._held.writes[space.collection]:
            # Others wrote meanwhile, perhaps to what was read already.
            vectors = await read_boundary(shard, boundary, most, yields=False)
        return vectors

    def _upserted(self, shard: CollectionShard, space: VectorSpace, points: Sequence[Point]) -> None:
        fingerprint = space.fingerprint
        strings = [pack_point(fingerprint, point) for point in points]
        # Packed first: killed in between, there is a row too many, which nobody reads, rather than one too few.
        translate_engine_errors(lambda: shard.packed.put(zip(points, strings, strict=True)))
        made = [edge_point(fingerprint, point) for point in points]
        self._changed(shard, space, UpdateOperation.upsert_points(made))
        vectors = [None if string is None else unpack_vectors(fingerprint, string) for string in strings]
        self._held.written(space.collection, zip(points, vectors, strict=True))

    def _changed(self, shard: CollectionShard, space: VectorSpace, operation: UpdateOperation) -> None:
        try:
            shard.update(operation)
        except BaseException:
            # The engine may have applied a part of it.
            self._held.drop_all(space.collection)
            raise

    async def _written(self, shard: CollectionShard, space: VectorSpace, count: int) -> None:
        """Make writes durable: the log always, the segments now and then."""
        await shard.sync_log()
        waiting = self._unflushed.get(space.collection, 0) + count
        if waiting >= MAX_UNFLUSHED_WRITES:
            shard.flush()
            waiting = 0
        self._unflushed[space.collection] = waiting
