"""The vector index in this process: Qdrant Edge, a root for each partition, one shard directory a collection under it.

A write that returned survives `kill -9` and a power cut. The engine's optimiser never runs: it would hold the GIL for
seconds, and filtered searches are exact and fast without. A point has its pooled vector in the engine and in the packed
rows, with 16-bit floats in both, and its token vectors and passages in the packed rows alone. Boundaries of up to
10,000 points are read from these into memory: the engine takes 5 ms to return 500 ids. Larger ones are searched by the
engine, 10 ms for 50,000, and their candidates are compared token by token from packed rows. A point that can't be
packed (`packed_vectors.pack_point`) has its token vectors in the engine and no passages: it is scored as a whole text.

A point in one store alone, after a kill between the two, has no hash: its record is embedded again.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np
from qdrant_edge import Query, UpdateOperation

from agents.ports.indexes import INCOMPLETE, PlannedSearch, VectorReads
from schemas.models.vectors import Encoded, Matrix, MemoryFilter, Nearest, Point, Scored, Vector
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.vectors.embedded import edge_shard
from streams.adapters.vectors.embedded.boundary_cache import (
    BoundaryCache,
    CachedBoundaries,
    KeptTokens,
    TokenCache,
    score_rows,
)
from streams.adapters.vectors.embedded.edge_collections import (
    EdgeCollections,
    OpenShards,
    PacedOpening,
    UntilQuiet,
    no_requests,
)
from streams.adapters.vectors.embedded.edge_shard import CollectionShard
from streams.adapters.vectors.embedded.maxsim import QuestionSteps, best_of
from streams.adapters.vectors.embedded.packed_vectors import PACKED_STEPS, pack_point, unpack_vectors, with_half_floats
from streams.adapters.vectors.embedded.text_columns import TextQuestion
from streams.adapters.vectors.shared import vector_contract as contract
from streams.adapters.vectors.shared.qdrant_payload import TOKENS, admits_none, pooled_name
from streams.adapters.vectors.shared.vector_contract import ScoredText
from streams.batching import batches

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EdgeResources:
    """Bounds and orders over all partitions."""

    cache: BoundaryCache = field(default_factory=BoundaryCache)
    tokens: KeptTokens = field(default_factory=KeptTokens)
    open_shards: OpenShards = field(default_factory=OpenShards)
    until_quiet: UntilQuiet = no_requests
    """Waits for requests, to which an index gives way after it has opened a collection."""
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)


MAX_UNFLUSHED_WRITES = 4096
"""Writes to one collection between two flushes of its segments, which hold the GIL for 30 ms, or 300 on a busy disk. It
bounds the log: some 9 MB with vectors of 384 numbers, replayed in a second after a kill."""

TYPICAL_TOKEN_ROWS = 16
"""Token vectors of a typical turn. A longer text counts as several writes, one for each of these."""


class EdgeIndex:
    """Implements `agents.ports.indexes.VectorIndex` on Qdrant Edge."""

    is_remote = False

    def __init__(self, root: Path, resources: EdgeResources | None = None) -> None:
        """Own this directory. Raises RuntimeError if another process does. After `close` calls raise KeyError."""
        resources = resources or EdgeResources()
        self._collections = EdgeCollections(root, resources.open_shards)
        self._packed = self._collections.packed
        self._opening = PacedOpening(self._collections, resources.until_quiet, resources.opening)
        self._unflushed: dict[str, int] = {}
        self._cached = CachedBoundaries(resources.cache, root.name, self._collections)
        self._tokens = TokenCache(self._packed, resources.tokens, root.name)

    async def upsert(self, space: VectorSpace, points: Sequence[Point]) -> None:
        unique = [with_half_floats(point) for point in contract.validate_points(space, points)]
        if not unique:
            return
        await self._opening.readable(space)
        shard = self._collections.writable(space, unique)
        rows = sum(map(contract.count_token_rows, unique))
        with shard.in_use():
            for batch in contract.write_batches(unique):
                self._upsert_batch(shard, space, batch)
                await asyncio.sleep(0)
            await self._make_durable(shard, space, max(len(unique), rows // TYPICAL_TOKEN_ROWS))

    async def delete(self, space: VectorSpace, memory_ids: Sequence[str]) -> None:
        ids = contract.validate_ids(memory_ids)
        if not ids or (shard := await self._opening.readable(space)) is None:
            return
        with shard.in_use():
            for batch in batches(ids, contract.POINT_BATCH_SIZE):
                # The packed store first: after a kill in between the point is in the engine alone, and `INCOMPLETE`.
                shard.begin_write()
                self._packed.remove(space.collection, batch)
                self._tokens.forget(space.collection, batch)
                self._update(shard, space, UpdateOperation.delete_points(list(batch)))
                self._cached.removed(space, batch)
                await asyncio.sleep(0)
            await self._make_durable(shard, space, len(ids))

    async def read_ahead(self, searches: Sequence[PlannedSearch]) -> VectorReads:
        del searches  # A read is a function call.
        return self

    async def search(
        self,
        space: VectorSpace,
        vector: Vector,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> Sequence[Scored]:
        contract.check_vector(space, vector)
        if (vectors := await self._cached.of(space, where)) is not None:
            return vectors.nearest(vector, where, limit, memory_ids)
        ids = None if memory_ids is None else contract.validate_ids(memory_ids)
        query = Query.Nearest(vector.tolist(), using=pooled_name(space.fingerprint))

        async def fetch(count: int) -> list[ScoredText]:
            return contract.by_direction(await self._query(space, query, where, count, ids))

        return await contract.fetch_wholes(fetch, limit)

    async def search_passages(
        self,
        space: VectorSpace,
        vector: Vector,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> Nearest:
        contract.check_vector(space, vector)
        if space.fingerprint.passages is None:
            contract.validate_ids(memory_ids or ())
            return Nearest.of([])
        return await self._best_texts(space, TextQuestion(vector=vector), where, limit, memory_ids)

    async def maxsim(
        self,
        space: VectorSpace,
        question: Matrix,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
        pooled: Vector | None = None,
    ) -> Nearest:
        contract.check_rows(space, question)
        if not len(question):
            return Nearest.of([])
        asked = TextQuestion(QuestionSteps.of(question), pooled)
        return await self._best_texts(space, asked, where, limit, memory_ids, question)

    async def _best_texts(
        self,
        space: VectorSpace,
        question: TextQuestion,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None,
        rows: Matrix | None = None,
    ) -> Nearest:
        """Return memories by their best text; `rows` are the token vectors for those that the engine scores."""
        if memory_ids is not None and not memory_ids:
            return Nearest.of([])
        vectors = await self._cached.of(space, where)
        if vectors is not None:
            # Ids of cached points were validated when they were written.
            contract.validate_ids([memory_id for memory_id in memory_ids or () if memory_id not in vectors.rows])
            return vectors.best_texts(question, where, limit, memory_ids)
        if not self._collections.holds(space):
            contract.validate_ids(memory_ids or ())
            return Nearest.of([])
        if memory_ids is None:
            asked: Sequence[str] = self._packed.ids(space, where.boundary)
        else:
            # The same sequence if it has no repetitions: its caller knows it.
            has_repetitions = len(frozenset(memory_ids)) < len(memory_ids)
            asked = list(dict.fromkeys(memory_ids)) if has_repetitions else memory_ids
        scored, unpacked = await score_rows(self._tokens, space, question, where, asked)
        if unpacked and rows is not None:
            query = Query.Nearest(rows.tolist(), using=TOKENS)

            async def fetch(count: int) -> list[Scored]:
                hits = await self._query(space, query, where, count, unpacked)
                return contract.sort_by_score((hit.memory_id, hit.score) for hit in hits)

            others = await contract.fetch_nearest(fetch, len(unpacked))
            number_of = {memory_id: number for number, memory_id in enumerate(asked)}
            numbers = np.array([*scored.rows.tolist(), *(number_of[hit.memory_id] for hit in others)], np.int64)
            scores = np.array([*scored.scores.tolist(), *(hit.score for hit in others)])
            return best_of(asked, numbers, scores, limit, scored.passages)
        limit = max(limit, 0)
        return Nearest(scored.table, scored.scores[:limit], scored.rows[:limit], scored.passages)

    async def hashes(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, str]:
        def read(shard: CollectionShard, batch: Sequence[str]) -> Mapping[str, str]:
            packed = self._packed.present(space.collection, batch)
            hashes = shard.ask(edge_shard.hash_query(batch))
            return hashes | dict.fromkeys(packed ^ hashes.keys(), INCOMPLETE)

        return await self._read(space, memory_ids, contract.POINT_BATCH_SIZE, read)

    async def vectors(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Encoded]:
        def read(shard: CollectionShard, batch: Sequence[str]) -> Mapping[str, Encoded]:
            of_engine = shard.ask(edge_shard.vector_query(space.fingerprint, batch))
            read: dict[str, Encoded] = {}
            for memory_id, row in self._packed.find(space, list(of_engine)).items():
                read[memory_id] = of_engine[memory_id]
                if row is not None:
                    tokens = row.vectors.tokens.astype(np.float32) / PACKED_STEPS
                    read[memory_id] = replace(of_engine[memory_id], tokens=tokens, passages=row.vectors.passages)
            return read

        return await self._read(space, memory_ids, contract.VECTOR_BATCH_SIZE, read)

    async def pooled(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Vector]:
        def read(shard: CollectionShard, batch: Sequence[str]) -> Mapping[str, Vector]:
            return shard.ask(edge_shard.pooled_query(space.fingerprint, batch))

        return await self._read(space, memory_ids, contract.POINT_BATCH_SIZE, read)

    async def count(self, space: VectorSpace, partition: int) -> int:
        return self._collections.count(space, partition)

    async def spaces(self) -> Mapping[str, Fingerprint]:
        return self._collections.fingerprints()

    def problem(self) -> str | None:
        return self._collections.problem

    def set_aside(self) -> Sequence[str]:
        return self._collections.set_aside

    def watch_losses(self, on_lost: Callable[[], object]) -> None:
        def lost(collection: str) -> None:
            self._cached.drop(collection)
            self._tokens.drop(collection)
            on_lost()

        self._collections.on_lost = lost

    async def close(self) -> None:
        self._cached.close()
        self._tokens.close()
        self._collections.close()

    async def _query(
        self, space: VectorSpace, query: Query, where: MemoryFilter, limit: int, memory_ids: Sequence[str] | None = None
    ) -> list[ScoredText]:
        if admits_none(where) or (shard := await self._opening.readable(space)) is None:
            return []
        has_lengths, admits = space.fingerprint.passages is not None, edge_shard.edge_filter(where, memory_ids)
        return shard.ask(edge_shard.score_query(query, admits, limit, has_lengths=has_lengths))

    def _upsert_batch(self, shard: CollectionShard, space: VectorSpace, points: Sequence[Point]) -> None:
        fingerprint = space.fingerprint
        packed = [pack_point(fingerprint, point) for point in points]
        # Read again, a point without a row has no passages.
        points = [
            replace(point, passages=None) if data is None else point for point, data in zip(points, packed, strict=True)
        ]
        # The packed store first: after a kill in between it has an extra row, which no search reads, not one too few.
        shard.begin_write()
        self._packed.put(space.collection, zip(points, packed, strict=True))
        self._tokens.forget(space.collection, [point.memory_id for point in points])
        edge_points = [
            edge_shard.edge_point(fingerprint, point, with_tokens=data is None)
            for point, data in zip(points, packed, strict=True)
        ]
        self._update(shard, space, UpdateOperation.upsert_points(edge_points))
        vectors = [None if data is None else unpack_vectors(fingerprint, data) for data in packed]
        self._cached.written(space, list(zip(points, vectors, strict=True)))

    def _update(self, shard: CollectionShard, space: VectorSpace, operation: UpdateOperation) -> None:
        try:
            shard.update(operation)
        except BaseException:
            # The engine may have applied a part of the write.
            self._cached.drop(space.collection)
            self._tokens.drop(space.collection)
            raise

    async def _read(
        self,
        space: VectorSpace,
        memory_ids: Sequence[str],
        batch_size: int,
        read: Callable[[CollectionShard, Sequence[str]], Mapping[str, T]],
    ) -> dict[str, T]:
        """Return what `read` returns of these points, batch by batch; nothing of a missing collection."""
        ids = contract.validate_ids(memory_ids)
        read_of: dict[str, T] = {}
        if (shard := await self._opening.readable(space)) is None:
            return read_of
        with shard.in_use():
            for batch in batches(ids, batch_size):
                read_of |= read(shard, batch)
                await asyncio.sleep(0)
        return read_of

    async def _make_durable(self, shard: CollectionShard, space: VectorSpace, count: int) -> None:
        """Sync the log, and flush the segments every `MAX_UNFLUSHED_WRITES`."""

        def sync_logs() -> None:
            # The packed vectors first: they must be on the disk before the engine's points are.
            self._packed.sync()
            shard.sync_log()

        await asyncio.to_thread(sync_logs)
        unflushed = self._unflushed.get(space.collection, 0) + count
        if unflushed >= MAX_UNFLUSHED_WRITES:
            shard.flush()
            unflushed = 0
        self._unflushed[space.collection] = unflushed


class PartitionedIndex:
    """Implements `agents.ports.indexes.VectorIndexes` on Qdrant Edge."""

    def __init__(
        self, root: Path, resources: EdgeResources | None = None, is_held: Callable[[int], bool] = lambda _: True
    ) -> None:
        """`is_held` tells whether a partition is this process's own: no other one is opened."""
        self._root = root
        self._resources = resources or EdgeResources()
        self._is_held = is_held
        self._open: dict[int, EdgeIndex] = {}
        self._on_lost: Callable[[], object] = lambda: None

    def at(self, partition: int) -> EdgeIndex:
        if (index := self._open.get(partition)) is not None:
            return index
        if not self._is_held(partition):
            raise KeyError(partition)
        opened = EdgeIndex(partition_root(self._root, partition), self._resources)
        opened.watch_losses(self._lost)
        self._open[partition] = opened
        return opened

    def problem(self) -> str | None:
        return next((problem for index in self._open.values() if (problem := index.problem()) is not None), None)

    def set_aside(self) -> Sequence[str]:
        return sorted({name for index in self._open.values() for name in index.set_aside()})

    def _lost(self) -> None:
        # Looked up at each loss: the listener may be set after a partition is opened.
        self._on_lost()

    def watch_losses(self, on_lost: Callable[[], object]) -> None:
        self._on_lost = on_lost

    async def release(self, partition: int) -> None:
        if (index := self._open.pop(partition, None)) is not None:
            await index.close()

    async def close(self) -> None:
        for partition in list(self._open):
            await self.release(partition)


def partition_root(root: Path, partition: int) -> Path:
    return root / str(partition)
