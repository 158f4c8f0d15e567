"""Queries of points as plain values, and what sends them: by gRPC, or by REST (and to the client's local mode).

Messages of gRPC are built and read without the client's classes. These convert 900 hits in 4.2 ms of processor time,
where reading the message takes 0.3, and 64 points with 16 token vectors each in 11.7 ms, where numpy's bytes take 1.5.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from qdrant_client import AsyncQdrantClient, grpc, models
from qdrant_client.conversions.conversion import GrpcToRest

from schemas.models.vectors import Matrix, MemoryFilter, Point, Vector
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.server.stored_points import MEMORY, PART, StoredPoint, stored_points
from streams.adapters.vectors.shared import qdrant_payload as payload
from streams.adapters.vectors.shared.vector_contract import ScoredText

Hits = list[ScoredText]
"""In the order of the server."""


@dataclass(frozen=True, slots=True)
class PointQuery:
    """The points nearest to `rows` that `where` admits: by cosine for one row, by MaxSim for a matrix.

    `memory_ids` restricts it to these memories. With `prefetch` it scores what those queries find, and nothing else:
    candidates and late interaction in one query. A prefetch without `rows` finds its `memory_ids`. With `has_parts`
    passages are found as well: the limit counts points, and hits name their memory and part. With `has_lengths` hits
    of cut texts have the length of their vector.
    """

    using: str | None
    rows: Vector | Matrix | None
    where: MemoryFilter
    limit: int
    memory_ids: Sequence[str] | None = None
    prefetch: Sequence["PointQuery"] = ()
    has_parts: bool = False
    has_lengths: bool = False

    @property
    def fields(self) -> list[str]:
        """The fields of the payload that hits come with."""
        return [MEMORY, PART] * self.has_parts + [payload.LENGTH] * self.has_lengths


class PointTransport(Protocol):
    """Sends queries and points. Raises the client's errors."""

    async def query(self, name: str, queries: Sequence[PointQuery]) -> list[Hits]:
        """Answer all queries of a collection in one request, in their order."""

    async def upsert(self, name: str, fingerprint: Fingerprint, points: Sequence[Point]) -> models.UpdateResult:
        """Write points in one request, and wait until they are applied."""


class GrpcPoints:
    """Implements `PointTransport` over gRPC."""

    def __init__(self, client: AsyncQdrantClient, search_params: grpc.SearchParams, timeout_s: float) -> None:
        self._client = client
        self._params = search_params
        self._timeout_s = timeout_s

    async def query(self, name: str, queries: Sequence[PointQuery]) -> list[Hits]:
        batch = grpc.QueryBatchPoints(
            collection_name=name, query_points=[query_message(name, query, self._params) for query in queries]
        )
        answer = await self._client.grpc_points.QueryBatch(batch, timeout=self._timeout_s)
        return [[_grpc_hit(hit) for hit in batch_result.result] for batch_result in answer.result]

    async def upsert(self, name: str, fingerprint: Fingerprint, points: Sequence[Point]) -> models.UpdateResult:
        structs = [point_message(fingerprint, stored) for stored in stored_points(fingerprint, points)]
        written = grpc.UpsertPoints(collection_name=name, wait=True, points=structs)
        answer = await self._client.grpc_points.Upsert(written, timeout=self._timeout_s)
        return GrpcToRest.convert_update_result(answer.result)


def point_message(fingerprint: Fingerprint, point: StoredPoint) -> grpc.PointStruct:
    named = {
        name: grpc.Vector(dense=dense_message(rows)) if rows.ndim == 1 else grpc.Vector(multi_dense=rows_message(rows))
        for name, rows in point.vectors.items()
    }
    if payload.pooled_name(fingerprint) is None:
        vectors = grpc.Vectors(vector=named[payload.POOLED])
    else:
        vectors = grpc.Vectors(vectors=grpc.NamedVectors(vectors=named))
    return grpc.PointStruct(
        id=grpc.PointId(uuid=point.point_id),
        vectors=vectors,
        payload={key: _value(value) for key, value in point.payload.items()},
    )


def _grpc_hit(hit: grpc.ScoredPoint) -> ScoredText:
    memory_id = hit.payload[MEMORY].string_value if MEMORY in hit.payload else hit.id.uuid
    part = hit.payload[PART].integer_value if PART in hit.payload else None
    length = hit.payload[payload.LENGTH].double_value if payload.LENGTH in hit.payload else 1.0
    return ScoredText(memory_id, hit.score, part, length)


def query_message(name: str, query: PointQuery, params: grpc.SearchParams) -> grpc.QueryPoints:
    """Return one query of a batch. Vectors are not in the answer, nor is the payload but for the query's fields."""
    fields = grpc.PayloadIncludeSelector(fields=query.fields)
    prefetch = [
        grpc.PrefetchQuery(
            query=_grpc_nearest(candidates),
            using=candidates.using,
            filter=grpc_filter(candidates.where, candidates.memory_ids, has_parts=candidates.has_parts),
            params=params,
            limit=candidates.limit,
        )
        for candidates in query.prefetch
    ]
    return grpc.QueryPoints(
        collection_name=name,
        prefetch=prefetch,
        query=_grpc_nearest(query),
        using=query.using,
        filter=grpc_filter(query.where, query.memory_ids, has_parts=query.has_parts),
        params=params,
        limit=query.limit,
        with_payload=grpc.WithPayloadSelector(include=fields) if query.fields else None,
    )


def _grpc_nearest(query: PointQuery) -> grpc.Query | None:
    if query.rows is None:
        return None
    if query.rows.ndim == 1:
        return grpc.Query(nearest=grpc.VectorInput(dense=dense_message(query.rows)))
    return grpc.Query(nearest=grpc.VectorInput(multi_dense=rows_message(query.rows)))


def grpc_filter(where: MemoryFilter, ids: Sequence[str] | None, *, has_parts: bool = False) -> grpc.Filter:
    """Return a filter as a message, with `has_parts` by the memory that a point names.

    Its ranges are doubles, exact for the milliseconds of any date.
    """
    must = [
        _field(key=field, match=grpc.Match(keywords=grpc.RepeatedStrings(strings=values)))
        for field, values in payload.match_values(where).items()
    ]
    if where.since_ms is not None or where.until_ms is not None:
        must.append(_field(key=payload.TIME, range=grpc.Range(gte=where.since_ms, lt=where.until_ms)))
    if ids is not None and has_parts:
        must.append(_field(key=MEMORY, match=grpc.Match(keywords=grpc.RepeatedStrings(strings=ids))))
    elif ids is not None:
        must.append(
            grpc.Condition(has_id=grpc.HasIdCondition(has_id=[grpc.PointId(uuid=memory_id) for memory_id in ids]))
        )
    return grpc.Filter(must=must)


def _field(**condition: Any) -> grpc.Condition:
    return grpc.Condition(field=grpc.FieldCondition(**condition))


def dense_message(vector: Vector) -> grpc.DenseVector:
    """Return a vector as a message: `repeated float data = 1`, whose packed form is numpy's."""
    message: grpc.DenseVector = grpc.DenseVector.FromString(
        _length_delimited(vector.size * FLOAT_BYTES) + _floats(vector).tobytes()
    )
    return message


def rows_message(rows: Matrix) -> grpc.MultiDenseVector:
    """Return token vectors as a message: `repeated DenseVector vectors = 1`, all of one length."""
    inner = _length_delimited(rows.shape[1] * FLOAT_BYTES)
    head = np.frombuffer(_length_delimited(len(inner) + rows.shape[1] * FLOAT_BYTES) + inner, np.uint8)
    heads = np.broadcast_to(head, (len(rows), len(head)))
    body: bytes = np.hstack([heads, _floats(rows).view(np.uint8)]).tobytes()
    message: grpc.MultiDenseVector = grpc.MultiDenseVector.FromString(body)
    return message


FLOAT_BYTES = 4

FIELD_1 = b"\x0a"
"""The tag of a message's first field, of a length and so many bytes (Protocol Buffers, encoding)."""


def _length_delimited(length: int) -> bytes:
    """Return the header of a length-delimited field 1: its tag, and the length as a varint."""
    varint = bytearray()
    while length > 0x7F:
        varint.append(length & 0x7F | 0x80)
        length >>= 7
    return FIELD_1 + bytes(varint) + bytes([length])


def _floats(numbers: Vector | Matrix) -> Vector | Matrix:
    return np.ascontiguousarray(numbers, "<f4")


def _value(value: str | float | Mapping[str, str]) -> grpc.Value:
    """Return a value of a payload, which is a text, a number, or texts by name."""
    if isinstance(value, str):
        return grpc.Value(string_value=value)
    if isinstance(value, int):
        return grpc.Value(integer_value=value)
    if isinstance(value, float):
        return grpc.Value(double_value=value)
    return grpc.Value(struct_value=grpc.Struct(fields={key: _value(part) for key, part in value.items()}))


class RestPoints:
    """Implements `PointTransport` over REST."""

    def __init__(self, client: AsyncQdrantClient, search_params: models.SearchParams) -> None:
        self._client = client
        self._params = search_params

    async def query(self, name: str, queries: Sequence[PointQuery]) -> list[Hits]:
        requests: list[models.QueryRequest] = []
        for query in queries:
            prefetch = [
                models.Prefetch(
                    query=_rest_nearest(candidates),
                    using=candidates.using,
                    filter=rest_filter(candidates.where, candidates.memory_ids, has_parts=candidates.has_parts),
                    params=self._params,
                    limit=candidates.limit,
                )
                for candidates in query.prefetch
            ]
            request = models.QueryRequest(
                prefetch=prefetch or None,
                query=_rest_nearest(query),
                using=query.using,
                filter=rest_filter(query.where, query.memory_ids, has_parts=query.has_parts),
                params=self._params,
                limit=query.limit,
                with_payload=query.fields or False,
                with_vector=False,
            )
            requests.append(request)
        answers = await self._client.query_batch_points(name, requests)
        return [[_rest_hit(point) for point in answer.points] for answer in answers]

    async def upsert(self, name: str, fingerprint: Fingerprint, points: Sequence[Point]) -> models.UpdateResult:
        structs: list[models.PointStruct] = []
        for stored in stored_points(fingerprint, points):
            named: dict[str, Any] = {vector: rows.tolist() for vector, rows in stored.vectors.items()}
            vectors = named[payload.POOLED] if payload.pooled_name(fingerprint) is None else named
            structs.append(models.PointStruct(id=stored.point_id, vector=vectors, payload=dict(stored.payload)))
        return await self._client.upsert(name, structs, wait=True)


def _rest_hit(point: models.ScoredPoint) -> ScoredText:
    named = point.payload or {}
    length = named.get(payload.LENGTH, 1.0)
    return ScoredText(named.get(MEMORY, str(point.id)), point.score, named.get(PART), length)


def _rest_nearest(query: PointQuery) -> models.NearestQuery | None:
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
