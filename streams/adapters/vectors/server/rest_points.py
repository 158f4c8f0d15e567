"""Points and queries in the client's classes: for REST, and for the client's local mode."""

from collections.abc import Sequence

from qdrant_client import AsyncQdrantClient, models

from schemas.models.vectors import MemoryFilter, Point
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.server.point_queries import Hits, PointQuery
from streams.adapters.vectors.shared import qdrant_payload as payload


class RestPoints:
    """Implements `PointTransport` over REST."""

    def __init__(self, client: AsyncQdrantClient, search_params: models.SearchParams) -> None:
        self._client = client
        self._params = search_params

    async def query(self, name: str, queries: Sequence[PointQuery]) -> list[Hits]:
        """Answer all queries of a collection in one request."""
        requests = [self._request(query) for query in queries]
        answers = await self._client.query_batch_points(name, requests)
        return [[(point.id, point.score) for point in answer.points] for answer in answers]

    async def upsert(self, name: str, fingerprint: Fingerprint, points: Sequence[Point]) -> models.UpdateResult:
        """Write points in one request."""
        structs = [
            models.PointStruct(
                id=one.memory_id, vector=payload.named_vectors(fingerprint, one), payload=payload.payload_of(one)
            )
            for one in points
        ]
        return await self._client.upsert(name, structs, wait=True)

    def _request(self, query: PointQuery) -> models.QueryRequest:
        return models.QueryRequest(
            prefetch=[self._prefetch(one) for one in query.prefetch] or None,
            query=_nearest(query),
            using=query.using,
            filter=rest_filter(query.where, query.memory_ids),
            params=self._params,
            limit=query.limit,
            with_payload=False,
            with_vector=False,
        )

    def _prefetch(self, query: PointQuery) -> models.Prefetch:
        return models.Prefetch(
            query=_nearest(query),
            using=query.using,
            filter=rest_filter(query.where, query.memory_ids),
            params=self._params,
            limit=query.limit,
        )


def _nearest(query: PointQuery) -> models.NearestQuery | None:
    return None if query.rows is None else models.NearestQuery(nearest=query.rows.tolist())


def rest_filter(where: MemoryFilter, ids: Sequence[str] | None) -> models.Filter:
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
