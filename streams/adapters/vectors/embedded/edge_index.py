"""The vector index of a partition, in this process: Qdrant Edge, one shard directory a collection under one root.

A write that returned survives `kill -9` and a power cut. The engine's optimiser never runs: it would hold the GIL for
seconds, and filtered searches are exact and fast without. The engine is the source of truth for points, and the packed
store for their token vectors and passages, where they can be packed; pooled vectors have 16-bit floats in both. A point
that can't be packed (`packed_rows.pack_point`) has its token vectors in the engine and no passages: it is scored as a
whole text by its direction. The vectors of queried boundaries are cached, of large ones the pooled ones: the engine
takes 5 ms to return 500 ids, and 10 to search 50,000.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from qdrant_edge import Query, UpdateOperation

from agents.ports.vector_index import PlannedSearch, VectorReads
from schemas.models.vectors import Encoded, Matrix, MemoryFilter, Nearest, Point, Scored, Vector
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.vectors.embedded import edge_requests
from streams.adapters.vectors.embedded.boundary_reads import read_ids, score_rows
from streams.adapters.vectors.embedded.boundary_vectors import BoundaryVectors
from streams.adapters.vectors.embedded.cached_boundaries import CachedBoundaries
from streams.adapters.vectors.embedded.edge_collections import EdgeCollections
from streams.adapters.vectors.embedded.edge_resources import EdgeResources
from streams.adapters.vectors.embedded.edge_shard import CollectionShard
from streams.adapters.vectors.embedded.paced_opening import PacedOpening
from streams.adapters.vectors.embedded.packed_rows import PACKED_STEPS, pack_point, unpack_vectors, with_half_floats
from streams.adapters.vectors.embedded.scoring import QuestionSteps, best_of
from streams.adapters.vectors.embedded.text_columns import TextQuestion
from streams.adapters.vectors.embedded.token_cache import TokenCache
from streams.adapters.vectors.shared import vector_contract as contract
from streams.adapters.vectors.shared.qdrant_payload import TOKENS, admits_none, pooled_name
from streams.adapters.vectors.shared.vector_contract import ScoredText
from streams.batching import batches

MAX_UNFLUSHED_WRITES = 4096
"""Writes to one collection between two flushes of its segments, which hold the GIL for 30 ms, or 300 on a busy disk. It
bounds the log: some 9 MB with vectors of 384 numbers, replayed in a second after a kill."""

TYPICAL_TOKEN_ROWS = 16
"""Token vectors of a typical turn. A longer text counts as several writes, one for each of these."""


class EdgeIndex:
    """Implements `agents.ports.vector_index.VectorIndex` on Qdrant Edge."""

    is_remote = False

    def __init__(self, root: Path, resources: EdgeResources | None = None) -> None:
        """Own this directory. Raises RuntimeError if another process does. After `close` calls raise KeyError."""
        resources = resources or EdgeResources()
        self._collections = EdgeCollections(root, resources.open_shards)
        self._packed = self._collections.packed
        self._opening = PacedOpening(self._collections, resources.until_quiet, resources.opening)
        self._unflushed: dict[str, int] = {}
        self._cached = CachedBoundaries(
            resources.cache, root.name, self._collections, self._opening, resources.until_quiet
        )
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
                # The packed store first: after a kill in between it lacks a row, which is read from the engine.
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

    async def search(self, space: VectorSpace, vector: Vector, where: MemoryFilter, limit: int) -> Sequence[Scored]:
        contract.check_vector(space, vector)
        if (vectors := await self._cached.of(space, where)) is not None:
            return vectors.nearest(vector, where, limit)
        query = Query.Nearest(vector.tolist(), using=pooled_name(space.fingerprint))

        async def fetch(count: int) -> list[ScoredText]:
            return contract.by_direction(self._query(space, query, where, count))

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
        if isinstance(vectors, BoundaryVectors):
            # Known ids were validated when they were written.
            contract.validate_ids([memory_id for memory_id in memory_ids or () if memory_id not in vectors.rows])
            return vectors.best_texts(question, where, limit, memory_ids)
        shard = await self._opening.readable(space)
        if shard is None or not shard.has_packed_tokens:
            ids = None if memory_ids is None else contract.validate_ids(memory_ids)
            return Nearest.of([] if rows is None else await self._maxsim_of_engine(space, rows, where, limit, ids))
        with shard.in_use():
            asked = await read_ids(shard, where.boundary) if memory_ids is None else _each_once(memory_ids)
            found, unpacked = await score_rows(self._tokens, space, question, where, asked)
        if unpacked and rows is not None:
            others = await self._maxsim_of_engine(space, rows, where, len(unpacked), unpacked)
            number_of = {memory_id: number for number, memory_id in enumerate(asked)}
            numbers = np.array([*found.rows.tolist(), *(number_of[one.memory_id] for one in others)], np.int64)
            scores = np.array([*found.scores.tolist(), *(one.score for one in others)])
            return best_of(asked, numbers, scores, limit, found.passages)
        limit = max(limit, 0)
        return Nearest(found.table, found.scores[:limit], found.rows[:limit], found.passages)

    async def _maxsim_of_engine(
        self, space: VectorSpace, question: Matrix, where: MemoryFilter, limit: int, ids: Sequence[str] | None
    ) -> Sequence[Scored]:
        query = Query.Nearest(question.tolist(), using=TOKENS)

        async def fetch(count: int) -> list[Scored]:
            hits = self._query(space, query, where, count, ids)
            return contract.sort_by_score((hit.memory_id, hit.score) for hit in hits)

        return await contract.fetch_nearest(fetch, limit)

    async def hashes(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, str]:
        ids = contract.validate_ids(memory_ids)
        found: dict[str, str] = {}
        if (shard := await self._opening.readable(space)) is None:
            return found
        with shard.in_use():
            for batch in batches(ids, contract.POINT_BATCH_SIZE):
                found |= shard.ask(edge_requests.hash_query(batch))
                await asyncio.sleep(0)
        return found

    async def vectors(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Encoded]:
        ids = contract.validate_ids(memory_ids)
        found: dict[str, Encoded] = {}
        if (shard := await self._opening.readable(space)) is None:
            return found
        with shard.in_use():
            for batch in batches(ids, contract.VECTOR_BATCH_SIZE):
                found |= self._with_tokens(
                    shard, space, shard.ask(edge_requests.vector_query(space.fingerprint, batch))
                )
                await asyncio.sleep(0)
        return found

    async def pooled(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Vector]:
        ids = contract.validate_ids(memory_ids)
        found: dict[str, Vector] = {}
        if (shard := await self._opening.readable(space)) is None:
            return found
        with shard.in_use():
            for batch in batches(ids, contract.POINT_BATCH_SIZE):
                found |= shard.ask(edge_requests.pooled_query(space.fingerprint, batch))
                await asyncio.sleep(0)
        return found

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

    async def until_read(self) -> None:
        """Wait until the boundaries with many memories that were asked about are in memory."""
        await self._cached.until_read()

    async def close(self) -> None:
        await self._cached.close()
        self._tokens.close()
        self._collections.close()

    def _query(
        self, space: VectorSpace, query: Query, where: MemoryFilter, limit: int, memory_ids: Sequence[str] | None = None
    ) -> list[ScoredText]:
        if admits_none(where) or (shard := self._collections.readable(space)) is None:
            return []
        has_lengths, admits = space.fingerprint.passages is not None, edge_requests.edge_filter(where, memory_ids)
        return shard.ask(edge_requests.score_query(query, admits, limit, has_lengths=has_lengths))

    def _upsert_batch(self, shard: CollectionShard, space: VectorSpace, points: Sequence[Point]) -> None:
        fingerprint = space.fingerprint
        packed = [pack_point(fingerprint, point) for point in points]
        # Read again, a point without a row has no passages.
        points = [
            replace(point, passages=None) if data is None else point for point, data in zip(points, packed, strict=True)
        ]
        # The packed store first: after a kill in between it has an extra row, which is ignored, not one too few.
        shard.begin_write()
        self._packed.put(space.collection, zip(points, packed, strict=True))
        self._tokens.forget(space.collection, [point.memory_id for point in points])
        edge_points = [
            edge_requests.edge_point(fingerprint, point, with_tokens=not (shard.has_packed_tokens and data))
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

    def _with_tokens(
        self, shard: CollectionShard, space: VectorSpace, found: Mapping[str, Encoded]
    ) -> Mapping[str, Encoded]:
        """Return vectors of the engine with their token vectors and passages, where these are packed."""
        if not shard.has_packed_tokens:
            return found
        # A point without a row is being removed, or a kill came in between: what is left of it is not its text.
        return {
            one: found[one]
            if row is None
            else replace(
                found[one], tokens=row.vectors.tokens.astype(np.float32) / PACKED_STEPS, passages=row.vectors.passages
            )
            for one, row in self._packed.find(space, list(found)).items()
        }

    async def _make_durable(self, shard: CollectionShard, space: VectorSpace, count: int) -> None:
        """Sync the log, and flush the segments every `MAX_UNFLUSHED_WRITES`."""
        await asyncio.to_thread(self._sync_logs, shard)
        unflushed = self._unflushed.get(space.collection, 0) + count
        if unflushed >= MAX_UNFLUSHED_WRITES:
            shard.flush()
            unflushed = 0
        self._unflushed[space.collection] = unflushed

    def _sync_logs(self, shard: CollectionShard) -> None:
        # The packed vectors first: they must be on the disk before the engine's points are.
        self._packed.sync()
        shard.sync_log()


def _each_once(memory_ids: Sequence[str]) -> Sequence[str]:
    """Return ids without repetitions, the same sequence if it has none: its caller knows it."""
    return memory_ids if len(frozenset(memory_ids)) == len(memory_ids) else list(dict.fromkeys(memory_ids))
