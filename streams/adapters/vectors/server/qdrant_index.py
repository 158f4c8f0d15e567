"""The vector index on a Qdrant server, shared by any number of workers.

Guaranteed: a write that returned is applied (`wait=True`); a server that is down, slow, busy or broken is `Unavailable`
within the timeout of each request.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, TypeVar

from qdrant_client import AsyncQdrantClient, models

from agents.ports.indexes import PlannedSearch, VectorReads
from schemas.models.vectors import Encoded, Matrix, MemoryFilter, Nearest, Point, Scored, Vector
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.vectors.server.qdrant_collections import ServerCollections
from streams.adapters.vectors.server.read_ahead import read_ahead
from streams.adapters.vectors.server.stored_points import (
    IN_MEMORY,
    PASSAGE,
    PASSAGE_COUNT,
    ServerStorage,
    decode_vectors,
    passage_ids,
    passages_of,
    points_of,
)
from streams.adapters.vectors.server.transports import GrpcPoints, Hits, PointQuery, PointTransport, RestPoints
from streams.adapters.vectors.shared import qdrant_payload as payload
from streams.adapters.vectors.shared import vector_contract as contract
from streams.adapters.vectors.shared.vector_contract import ScoredText
from streams.batching import batches

T = TypeVar("T")

BATCHES_AT_ONCE = 4
"""Batches of this process that are written or read at once: the server works on one while others are on their way. Its
own advice for bulk uploads is two to four."""

GRPC_OPTIONS: Mapping[str, Any] = {
    "grpc.initial_reconnect_backoff_ms": 200,
    "grpc.min_reconnect_backoff_ms": 200,
    "grpc.max_reconnect_backoff_ms": 2000,
    "grpc.keepalive_time_ms": 10_000,
    "grpc.keepalive_timeout_ms": 5000,
}
"""A server that was away is tried again every 2 s at the latest, by default every 2 min. A silent one is asked for a
sign of life after 10 s, by default never: that its machine is gone is noticed when TCP gives up, after a quarter of an
hour."""


class QdrantIndex:
    """Implements `agents.ports.indexes.VectorIndex` on a Qdrant server."""

    is_remote = True

    def __init__(
        self,
        client: AsyncQdrantClient,
        *,
        prefix: str = "",
        timeout_s: float = 5.0,
        grpc: bool = False,
        storage: ServerStorage = IN_MEMORY,
    ) -> None:
        """Take over this client. `prefix` starts the names of collections; `timeout_s` is that of one request.

        `grpc`: the client prefers gRPC, so that points and queries are encoded for it.
        """
        self._client = client
        self._collections = ServerCollections(client, prefix, timeout_s, storage)
        self._points: PointTransport = (
            GrpcPoints(client, storage.grpc_search_params(), timeout_s)
            if grpc
            else RestPoints(client, storage.rest_search_params())
        )
        self._slots = asyncio.Semaphore(BATCHES_AT_ONCE)

    @classmethod
    def connect(
        cls,
        url: str,
        *,
        api_key: str | None = None,
        prefix: str = "",
        timeout_s: float = 5.0,
        grpc_port: int | None = None,
        storage: ServerStorage = IN_MEMORY,
    ) -> Self:
        """Return an index on the server at `url`, by gRPC at `grpc_port` of its host, by REST without one.

        Nothing is sent, so the server may start later.
        """
        client = AsyncQdrantClient(
            url=url,
            api_key=api_key,
            timeout=math.ceil(timeout_s),
            check_compatibility=False,
            prefer_grpc=grpc_port is not None,
            grpc_port=grpc_port or 0,
            grpc_options=dict(GRPC_OPTIONS),
        )
        return cls(client, prefix=prefix, timeout_s=timeout_s, grpc=grpc_port is not None, storage=storage)

    async def upsert(self, space: VectorSpace, points: Sequence[Point]) -> None:
        unique = contract.validate_points(space, points)
        if not unique:
            return
        name = await self._collections.writable(space, unique)

        async def write(batch: Sequence[Point]) -> None:
            if space.fingerprint.passages is not None:
                # Those of a former text, which may have more.
                stale = models.FilterSelector(filter=passages_of([point.memory_id for point in batch]))
                await self._collections.write(name, self._client.delete(name, stale, wait=True))
            await self._collections.write(name, self._points.upsert(name, space.fingerprint, batch))

        await self._each(write, list(contract.write_batches(unique)))

    async def delete(self, space: VectorSpace, memory_ids: Sequence[str]) -> None:
        ids = contract.validate_ids(memory_ids)
        if (name := await self._collections.readable(space)) is None:
            return

        async def remove(batch: Sequence[str]) -> None:
            has_parts = space.fingerprint.passages is not None
            points: models.FilterSelector | models.PointIdsList = (
                models.FilterSelector(filter=points_of(batch)) if has_parts else models.PointIdsList(points=list(batch))
            )
            await self._collections.write(name, self._client.delete(name, points, wait=True))

        await self._each(remove, list(batches(ids, contract.POINT_BATCH_SIZE)))

    async def read_ahead(self, searches: Sequence[PlannedSearch]) -> VectorReads:
        return await read_ahead(searches, self._send, self)

    async def search(
        self,
        space: VectorSpace,
        vector: Vector,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> list[Scored]:
        contract.check_vector(space, vector)
        ids = None if memory_ids is None else contract.validate_ids(memory_ids)
        if ids == []:
            return []
        has_lengths = space.fingerprint.passages is not None
        query = PointQuery(payload.pooled_name(space.fingerprint), vector, where, 0, ids, has_lengths=has_lengths)

        async def fetch(count: int) -> list[ScoredText]:
            [hits] = await self._send(space, [replace(query, limit=count)])
            return contract.by_direction(hits)

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
        ids = None if memory_ids is None else contract.validate_ids(memory_ids)
        if ids == [] or space.fingerprint.passages is None:
            return Nearest.of([])
        return await self._best(space, PointQuery(PASSAGE, vector, where, 0, ids, has_parts=True), limit)

    async def maxsim(
        self,
        space: VectorSpace,
        question: Matrix,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
        pooled: Vector | None = None,
    ) -> Nearest:
        del pooled  # The server scores all passages of a text in the time of one round trip.
        contract.check_rows(space, question)
        ids = None if memory_ids is None else contract.validate_ids(memory_ids)
        if not len(question) or ids == []:
            return Nearest.of([])
        has_parts = space.fingerprint.passages is not None
        return await self._best(space, PointQuery(payload.TOKENS, question, where, 0, ids, has_parts=has_parts), limit)

    async def hashes(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, str]:
        records = await self._records(space, memory_ids, contract.POINT_BATCH_SIZE, [payload.HASH], vectors=False)
        return {str(record.id): record.payload[payload.HASH] for record in records if record.payload}

    async def vectors(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Encoded]:
        fields = [] if space.fingerprint.passages is None else [PASSAGE_COUNT]
        records = await self._records(space, memory_ids, contract.VECTOR_BATCH_SIZE, fields, vectors=True)
        ids_of = {str(record.id): passage_ids(record) for record in records}
        wanted = [passage_id for ids in ids_of.values() for passage_id in ids]
        read = await self._records(space, wanted, contract.VECTOR_BATCH_SIZE, [], vectors=True) if wanted else []
        passages = {str(record.id): record for record in read}
        # Without a memory that is being replaced, some of whose passages are gone.
        complete = [record for record in records if passages.keys() >= set(ids_of[str(record.id)])]
        return {
            str(record.id): decode_vectors(
                space.fingerprint, record, [passages[each] for each in ids_of[str(record.id)]]
            )
            for record in complete
        }

    async def pooled(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Vector]:
        using = payload.pooled_name(space.fingerprint)
        wanted = True if using is None else [using]
        records = await self._records(space, memory_ids, contract.POINT_BATCH_SIZE, [], vectors=wanted)
        return {str(record.id): payload.decode_pooled_vector(record.vector) for record in records}

    async def count(self, space: VectorSpace, partition: int) -> int:
        if (name := await self._collections.readable(space)) is None:
            return 0
        only = models.Filter(
            must=[models.FieldCondition(key=payload.PARTITION, match=models.MatchValue(value=partition))]
        )
        return (await self._collections.ask(name, self._client.count(name, only, exact=True))).count

    async def spaces(self) -> Mapping[str, Fingerprint]:
        return await self._collections.fingerprints()

    async def delete_collections(self) -> None:
        """Delete all collections with this prefix. For tests and measurements."""
        for name in await self._collections.fingerprints():
            await self._collections.delete(name)

    def problem(self) -> str | None:
        return self._collections.guard.problem

    def set_aside(self) -> Sequence[str]:
        return ()

    def at(self, partition: int) -> Self:
        del partition  # The server's collections have all partitions.
        return self

    def watch_losses(self, on_lost: Callable[[], object]) -> None:
        del on_lost  # The server keeps its collections.

    async def release(self, partition: int) -> None:
        del partition

    async def close(self) -> None:
        self._collections.guard.close()
        await self._client.close()

    async def _best(self, space: VectorSpace, query: PointQuery, limit: int) -> Nearest:
        """Return the memories of the best points of a query, of which there are as many as needed."""

        async def fetch(count: int) -> list[ScoredText]:
            [hits] = await self._send(space, [replace(query, limit=count)])
            return contract.by_cosine(hits) if query.using == PASSAGE else contract.by_score(hits)

        return await contract.fetch_best(fetch, limit)

    async def _send(self, space: VectorSpace, queries: Sequence[PointQuery]) -> list[Hits]:
        """Answer queries of one collection in one request; none is sent for those that can find nothing."""
        sent = [query for query in queries if _can_find(query)]
        if not sent or (name := await self._collections.readable(space)) is None:
            return [[] for _ in queries]
        answers = iter(await self._collections.ask(name, self._points.query(name, sent)))
        return [next(answers) if _can_find(query) else [] for query in queries]

    async def _records(
        self,
        space: VectorSpace,
        memory_ids: Sequence[str],
        batch_size: int,
        fields: list[str],
        *,
        vectors: bool | list[str],
    ) -> list[models.Record]:
        """Return the points of these memories, with these fields of the payload and these vectors."""
        ids = contract.validate_ids(memory_ids)
        if (name := await self._collections.readable(space)) is None:
            return []

        async def read(batch: Sequence[str]) -> list[models.Record]:
            request = self._client.retrieve(name, list(batch), fields or False, with_vectors=vectors)
            return await self._collections.ask(name, request)

        return [record for part in await self._each(read, list(batches(ids, batch_size))) for record in part]

    async def _each(self, call: Callable[[Any], Awaitable[T]], some: Sequence[Sequence[Any]]) -> list[T]:
        """Make a call for each batch, at most `BATCHES_AT_ONCE` of this process at once; raises the first error."""
        if len(some) == 1:
            return [await self._in_slot(call, some[0])]
        calls = [asyncio.ensure_future(self._in_slot(call, batch)) for batch in some]
        try:
            return await asyncio.gather(*calls)
        except BaseException:
            for running in calls:
                running.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            raise

    async def _in_slot(self, call: Callable[[Any], Awaitable[T]], batch: Sequence[Any]) -> T:
        async with self._slots:
            return await call(batch)


def _can_find(query: PointQuery) -> bool:
    return not payload.admits_none(query.where) and (query.rows is None or len(query.rows) > 0)
