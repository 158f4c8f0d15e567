"""Points and queries in the client's classes: for REST, and for the client's local mode."""

from collections.abc import Sequence
from typing import Any

from qdrant_client import AsyncQdrantClient, models

from schemas.models.vectors import MemoryFilter, Point
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.server.point_queries import Hits, PointQuery
from streams.adapters.vectors.server.stored_points import MEMORY, PART, StoredPoint, stored_points
from streams.adapters.vectors.shared import qdrant_payload as payload
from streams.adapters.vectors.shared.vector_contract import ScoredText


class RestPoints:
    """Implements `PointTransport` over REST."""

    def __init__(self, client: AsyncQdrantClient, search_params: models.SearchParams) -> None:
        self._client = client
        self._params = search_params

    async def query(self, name: str, queries: Sequence[PointQuery]) -> list[Hits]:
        """Answer all queries of a collection in one request."""
        requests = [self._request(query) for query in queries]
        answers = await self._client.query_batch_points(name, requests)
        return [[_hit(point) for point in answer.points] for answer in answers]

    async def upsert(self, name: str, fingerprint: Fingerprint, points: Sequence[Point]) -> models.UpdateResult:
        """Write points in one request."""
        structs = [_struct(fingerprint, one) for one in stored_points(fingerprint, points)]
        return await self._client.upsert(name, structs, wait=True)

    def _request(self, query: PointQuery) -> models.QueryRequest:
        return models.QueryRequest(
            prefetch=[self._prefetch(one) for one in query.prefetch] or None,
            query=_nearest(query),
            using=query.using,
            filter=rest_filter(query.where, query.memory_ids, has_parts=query.has_parts),
            params=self._params,
            limit=query.limit,
            with_payload=query.fields or False,
            with_vector=False,
        )

    def _prefetch(self, query: PointQuery) -> models.Prefetch:
        return models.Prefetch(
            query=_nearest(query),
            using=query.using,
            filter=rest_filter(query.where, query.memory_ids, has_parts=query.has_parts),
            params=self._params,
            limit=query.limit,
        )


def _struct(fingerprint: Fingerprint, point: StoredPoint) -> models.PointStruct:
    named: dict[str, Any] = {name: rows.tolist() for name, rows in point.vectors.items()}
    vectors = named[payload.POOLED] if payload.pooled_name(fingerprint) is None else named
    return models.PointStruct(id=point.point_id, vector=vectors, payload=dict(point.payload))


def _hit(point: models.ScoredPoint) -> ScoredText:
    named = point.payload or {}
    length = named.get(payload.LENGTH, 1.0)
    return ScoredText(named.get(MEMORY, str(point.id)), point.score, named.get(PART), length)


def _nearest(query: PointQuery) -> models.NearestQuery | None:
    return None if query.rows is None else models.NearestQuery(nearest=query.rows.tolist())


def rest_filter(where: MemoryFilter, ids: Sequence[str] | None, *, has_parts: bool = False) -> models.Filter:
    """Return a filter in the client's classes, with `has_parts` by the memory that a point names.

    Its ranges are floats, exact for the milliseconds of any date.
    """
    must: list[models.Condition] = [
        models.FieldCondition(key=field, match=models.MatchAny(any=values))
        for field, values in payload.match_values(where).items()
    ]
    if where.since_ms is not None or where.until_ms is not None:
        must.append(models.FieldCondition(key=payload.TIME, range=models.Range(gte=where.since_ms, lt=where.until_ms)))
    if ids is not None and has_parts:
        must.append(models.FieldCondition(key=MEMORY, match=models.MatchAny(any=list(ids))))
    elif ids is not None:
        must.append(models.HasIdCondition(has_id=list(ids)))
    return models.Filter(must=must)
