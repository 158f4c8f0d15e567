"""The vector index on a Qdrant server, shared by any number of workers.

Guaranteed: a write that returned is applied (`wait=True`); a server that is down, slow, busy or broken is `Unavailable`
within the timeout of each request.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from qdrant_client import AsyncQdrantClient, models

from schemas.models.vectors import Encoded, Matrix, MemoryFilter, Point, Scored, Vector
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.vectors.server.qdrant_collections import ServerCollections
from streams.adapters.vectors.shared import qdrant_payload as payload
from streams.adapters.vectors.shared import vector_contract as contract
from streams.batching import batches

SERVER_EXACT_SEARCH = models.SearchParams(exact=True)
"""Ignore HNSW graphs: an older collection may have one, over the points of all users."""


class QdrantIndex:
    """Implements `agents.ports.vector_index.VectorIndex` on a Qdrant server."""

    def __init__(self, client: AsyncQdrantClient, *, prefix: str = "", timeout_s: float = 5.0) -> None:
        """Take over this client. `prefix` starts the names of collections; `timeout_s` is that of one request."""
        self._client = client
        self._collections = ServerCollections(client, prefix, timeout_s)

    @classmethod
    def connect(cls, url: str, *, api_key: str | None = None, prefix: str = "", timeout_s: float = 5.0) -> Self:
        """Return an index on the server at `url`. Nothing is sent, so the server may start later."""
        seconds = math.ceil(timeout_s)
        client = AsyncQdrantClient(url=url, api_key=api_key, timeout=seconds, check_compatibility=False)
        return cls(client, prefix=prefix, timeout_s=timeout_s)

    async def upsert(self, space: VectorSpace, points: Sequence[Point]) -> None:
        unique = contract.validate_points(space, points)
        if not unique:
            return
        name = await self._collections.writable(space, unique)
        for batch in contract.write_batches(unique):
            structs = [_server_point(space.fingerprint, point) for point in batch]
            await self._collections.write(name, self._client.upsert(name, structs, wait=True))

    async def delete(self, space: VectorSpace, memory_ids: Sequence[str]) -> None:
        ids = contract.validate_ids(memory_ids)
        if (name := await self._collections.readable(space)) is None:
            return
        for batch in batches(ids, contract.POINT_BATCH_SIZE):
            await self._collections.write(name, self._client.delete(name, list(batch), wait=True))

    async def search(self, space: VectorSpace, vector: Vector, where: MemoryFilter, limit: int) -> list[Scored]:
        numbers, using = contract.validate_vector(space, vector), payload.pooled_name(space.fingerprint)

        async def fetch(count: int) -> list[Scored]:
            return contract.sort_by_cosine(await self._query(space, numbers, using, where, count))

        return await contract.fetch_nearest(fetch, limit)

    async def maxsim(
        self,
        space: VectorSpace,
        question: Matrix,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> list[Scored]:
        rows, ids = (
            contract.validate_rows(space, question),
            None if memory_ids is None else contract.validate_ids(memory_ids),
        )
        if not rows or ids == []:
            return []

        async def fetch(count: int) -> list[Scored]:
            return contract.sort_by_score(await self._query(space, rows, payload.TOKENS, where, count, ids))

        return await contract.fetch_nearest(fetch, limit)

    async def hashes(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, str]:
        ids = contract.validate_ids(memory_ids)
        found: dict[str, str] = {}
        if (name := await self._collections.readable(space)) is None:
            return found
        for batch in batches(ids, contract.POINT_BATCH_SIZE):
            request = self._client.retrieve(name, list(batch), [payload.HASH], with_vectors=False)
            records = await self._collections.ask(name, request)
            found |= {str(record.id): record.payload[payload.HASH] for record in records if record.payload}
        return found

    async def vectors(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Encoded]:
        ids = contract.validate_ids(memory_ids)
        found: dict[str, Encoded] = {}
        if (name := await self._collections.readable(space)) is None:
            return found
        for batch in batches(ids, contract.VECTOR_BATCH_SIZE):
            request = self._client.retrieve(name, list(batch), with_payload=False, with_vectors=True)
            records = await self._collections.ask(name, request)
            found |= {
                str(record.id): payload.decode_point_vectors(space.fingerprint, record.vector) for record in records
            }
        return found

    async def pooled(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Vector]:
        ids = contract.validate_ids(memory_ids)
        found: dict[str, Vector] = {}
        if (name := await self._collections.readable(space)) is None:
            return found
        using = payload.pooled_name(space.fingerprint)
        for batch in batches(ids, contract.POINT_BATCH_SIZE):
            wanted = True if using is None else [using]
            request = self._client.retrieve(name, list(batch), with_payload=False, with_vectors=wanted)
            records = await self._collections.ask(name, request)
            found |= {str(record.id): payload.decode_pooled_vector(record.vector) for record in records}
        return found

    async def count(self, space: VectorSpace, partition: int) -> int:
        if (name := await self._collections.readable(space)) is None:
            return 0
        only = models.Filter(
            must=[models.FieldCondition(key=payload.PARTITION, match=models.MatchValue(value=partition))]
        )
        return (await self._collections.ask(name, self._client.count(name, only, exact=True))).count

    async def spaces(self) -> Mapping[str, Fingerprint]:
        return await self._collections.fingerprints()

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

    async def _query(
        self,
        space: VectorSpace,
        query: list[float] | list[list[float]],
        using: str | None,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> list[tuple[object, float]]:
        if payload.admits_none(where) or (name := await self._collections.readable(space)) is None:
            return []
        request = self._client.query_points(
            name,
            query=query,
            using=using,
            query_filter=server_filter(where, memory_ids),
            search_params=SERVER_EXACT_SEARCH,
            limit=limit,
            with_payload=False,
            with_vectors=False,
        )
        return [(point.id, point.score) for point in (await self._collections.ask(name, request)).points]


def _server_point(fingerprint: Fingerprint, point: Point) -> models.PointStruct:
    return models.PointStruct(
        id=point.memory_id, vector=payload.named_vectors(fingerprint, point), payload=payload.payload_of(point)
    )


def server_filter(where: MemoryFilter, ids: Sequence[str] | None) -> models.Filter:
    """Return a filter in the client's classes. Its ranges are floats, exact for the milliseconds of any date."""
    must: list[models.Condition] = [
        models.FieldCondition(key=field, match=models.MatchAny(any=values))
        for field, values in payload.match_values(where).items()
    ]
    if where.since_ms is not None or where.until_ms is not None:
        must.append(models.FieldCondition(key=payload.TIME, range=models.Range(gte=where.since_ms, lt=where.until_ms)))
    if ids is not None:
        must.append(models.HasIdCondition(has_id=list(ids)))
    return models.Filter(must=must)
