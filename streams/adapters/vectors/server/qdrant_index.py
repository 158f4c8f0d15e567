"""The vector index on a Qdrant server, shared by any number of workers.

Enters: points and queries of the port. Leaves: scored ids. Guaranteed: a write that returned is applied (`wait=True`);
a server that is down, slow, busy or broken is `Unavailable` within the timeout of each request.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Self

from qdrant_client import AsyncQdrantClient
from qdrant_client.models import (
    Condition,
    FieldCondition,
    Filter,
    HasIdCondition,
    MatchAny,
    MatchValue,
    PointStruct,
    Range,
    SearchParams,
)

from schemas.models.vectors import Encoded, Matrix, MemoryFilter, Point, Scored, Vector
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.vectors.server.qdrant_collections import ServerCollections
from streams.adapters.vectors.shared.qdrant_payload import HASH, PARTITION, TIME, admits_none, match_values, payload_of
from streams.adapters.vectors.shared.qdrant_vectors import TOKENS, decode_point_vectors, named_vectors, pooled_name
from streams.adapters.vectors.shared.vector_contract import (
    POINT_BATCH_SIZE,
    VECTOR_BATCH_SIZE,
    fetch_nearest,
    sort_by_cosine,
    sort_by_score,
    validate_ids,
    validate_points,
    validate_rows,
    validate_vector,
    write_batches,
)
from streams.batching import batches

SERVER_EXACT_SEARCH = SearchParams(exact=True)
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
        unique = validate_points(space, points)
        if not unique:
            return
        name = await self._collections.writable(space, unique)
        for batch in write_batches(unique):
            structs = [server_point(space.fingerprint, point) for point in batch]
            await self._collections.write(name, self._client.upsert(name, structs, wait=True))

    async def delete(self, space: VectorSpace, memory_ids: Sequence[str]) -> None:
        ids = validate_ids(memory_ids)
        if (name := await self._collections.readable(space)) is None:
            return
        for batch in batches(ids, POINT_BATCH_SIZE):
            await self._collections.write(name, self._client.delete(name, list(batch), wait=True))

    async def search(self, space: VectorSpace, vector: Vector, where: MemoryFilter, limit: int) -> list[Scored]:
        numbers, using = validate_vector(space, vector), pooled_name(space.fingerprint)

        async def fetch(count: int) -> list[Scored]:
            return sort_by_cosine(await self._query(space, numbers, using, where, count))

        return await fetch_nearest(fetch, limit)

    async def maxsim(
        self,
        space: VectorSpace,
        question: Matrix,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> list[Scored]:
        rows, ids = validate_rows(space, question), None if memory_ids is None else validate_ids(memory_ids)
        if not rows or ids == []:
            return []

        async def fetch(count: int) -> list[Scored]:
            return sort_by_score(await self._query(space, rows, TOKENS, where, count, ids))

        return await fetch_nearest(fetch, limit)

    async def hashes(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, str]:
        ids = validate_ids(memory_ids)
        found: dict[str, str] = {}
        if (name := await self._collections.readable(space)) is None:
            return found
        for batch in batches(ids, POINT_BATCH_SIZE):
            request = self._client.retrieve(name, list(batch), [HASH], with_vectors=False)
            records = await self._collections.ask(name, request)
            found |= {str(record.id): record.payload[HASH] for record in records if record.payload}
        return found

    async def vectors(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Encoded]:
        ids = validate_ids(memory_ids)
        found: dict[str, Encoded] = {}
        if (name := await self._collections.readable(space)) is None:
            return found
        for batch in batches(ids, VECTOR_BATCH_SIZE):
            request = self._client.retrieve(name, list(batch), with_payload=False, with_vectors=True)
            records = await self._collections.ask(name, request)
            found |= {str(record.id): decode_point_vectors(space.fingerprint, record.vector) for record in records}
        return found

    async def count(self, space: VectorSpace, partition: int) -> int:
        if (name := await self._collections.readable(space)) is None:
            return 0
        only = Filter(must=[FieldCondition(key=PARTITION, match=MatchValue(value=partition))])
        return (await self._collections.ask(name, self._client.count(name, only, exact=True))).count

    async def spaces(self) -> Mapping[str, Fingerprint]:
        return await self._collections.fingerprints()

    async def close(self) -> None:
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
        if admits_none(where) or (name := await self._collections.readable(space)) is None:
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


def server_point(fingerprint: Fingerprint, point: Point) -> PointStruct:
    """Return a point in the client's class."""
    return PointStruct(id=point.memory_id, vector=named_vectors(fingerprint, point), payload=payload_of(point))


def server_filter(where: MemoryFilter, ids: Sequence[str] | None) -> Filter:
    """Return a filter in the client's classes. Its ranges are floats, exact for the milliseconds of any date."""
    must: list[Condition] = [
        FieldCondition(key=field, match=MatchAny(any=values)) for field, values in match_values(where).items()
    ]
    if where.since_ms is not None or where.until_ms is not None:
        must.append(FieldCondition(key=TIME, range=Range(gte=where.since_ms, lt=where.until_ms)))
    if ids is not None:
        must.append(HasIdCondition(has_id=list(ids)))
    return Filter(must=must)
