"""Points, filters and requests in the classes of the embedded engine. Building one is pure; searches are exact."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import qdrant_edge as edge

from schemas.models.vectors import Encoded, MemoryFilter, Point, Vector
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.shared import qdrant_payload as payload
from streams.adapters.vectors.shared.vector_contract import ScoredText

EDGE_EXACT_SEARCH = edge.SearchParams(exact=True)
"""Ignore an HNSW graph, should a collection ever have one: it would be over the points of all users."""

ScrollOffset = int | UUID | str | None
"""The point with which a page starts."""


def edge_point(fingerprint: Fingerprint, point: Point, *, with_tokens: bool = True) -> edge.Point:
    """Return a point in the engine's class."""
    kept = point if with_tokens else replace(point, tokens=None)
    return edge.Point(point.memory_id, payload.named_vectors(fingerprint, kept), payload.payload_of(point))


def edge_filter(where: MemoryFilter, memory_ids: Sequence[str] | None) -> edge.Filter:
    """Return a filter in the engine's classes. Its ranges are floats, exact for the milliseconds of any date."""
    times = edge.RangeFloat(gte=where.since_ms, lt=where.until_ms)
    must = [
        edge.FieldCondition(field, match=edge.MatchAny(values)) for field, values in payload.match_values(where).items()
    ]
    timed = (
        [edge.FieldCondition(payload.TIME, range=times)]
        if where.since_ms is not None or where.until_ms is not None
        else []
    )
    return edge.Filter(must=[*must, *timed, *([] if memory_ids is None else [edge.HasIdCondition(set(memory_ids))])])


def score_query(
    query: edge.Query, admits: edge.Filter, limit: int, *, has_lengths: bool = False
) -> Callable[[edge.EdgeShard], list[ScoredText]]:
    """Request the best points and their scores, with the lengths of their vectors if they are asked for."""
    query_request = edge.QueryRequest(
        limit,
        query=query,
        filter=admits,
        params=EDGE_EXACT_SEARCH,
        with_payload=[payload.LENGTH] if has_lengths else False,
        with_vector=False,
    )
    return lambda engine: [
        ScoredText(str(point.id), point.score, length=(point.payload or {}).get(payload.LENGTH, 1.0))
        for point in engine.query(query_request)
    ]


def hash_query(memory_ids: Sequence[str]) -> Callable[[edge.EdgeShard], dict[str, str]]:
    """Request the content hashes of these points."""

    def request(engine: edge.EdgeShard) -> dict[str, str]:
        records = engine.retrieve(list(memory_ids), [payload.HASH], with_vector=False)
        return {str(record.id): record.payload[payload.HASH] for record in records if record.payload}

    return request


def vector_query(fingerprint: Fingerprint, memory_ids: Sequence[str]) -> Callable[[edge.EdgeShard], dict[str, Encoded]]:
    """Request the vectors of these points."""

    def request(engine: edge.EdgeShard) -> dict[str, Encoded]:
        records = engine.retrieve(list(memory_ids), with_payload=False, with_vector=True)
        return {str(record.id): payload.decode_point_vectors(fingerprint, record.vector) for record in records}

    return request


def pooled_query(fingerprint: Fingerprint, memory_ids: Sequence[str]) -> Callable[[edge.EdgeShard], dict[str, Vector]]:
    """Request the pooled vectors of these points."""
    name = payload.pooled_name(fingerprint)

    def request(engine: edge.EdgeShard) -> dict[str, Vector]:
        records = engine.retrieve(list(memory_ids), with_payload=False, with_vector=True if name is None else [name])
        return {str(record.id): payload.decode_pooled_vector(record.vector) for record in records}

    return request


def id_page_query(
    boundary: str, start: ScrollOffset, limit: int
) -> Callable[[edge.EdgeShard], tuple[list[str], ScrollOffset]]:
    """Request a page of ids of a boundary's points, and the start of the next page."""
    scroll = edge.ScrollRequest(
        offset=start,
        limit=limit,
        filter=edge.Filter(must=[edge.FieldCondition(payload.TENANT, match=edge.MatchValue(boundary))]),
        with_payload=False,
        with_vector=False,
    )

    def request(engine: edge.EdgeShard) -> tuple[list[str], ScrollOffset]:
        records, next_page = engine.scroll(scroll)
        return [str(record.id) for record in records], next_page

    return request


def _point_of(fingerprint: Fingerprint, record: Any) -> Point:
    vectors = payload.decode_point_vectors(fingerprint, record.vector)
    return payload.point_of(str(record.id), record.payload or {}, vectors)


def point_query(fingerprint: Fingerprint, memory_ids: Sequence[str]) -> Callable[[edge.EdgeShard], list[Point]]:
    """Request these points as they were written."""

    def request(engine: edge.EdgeShard) -> list[Point]:
        records = engine.retrieve(list(memory_ids), with_payload=True, with_vector=True)
        return [_point_of(fingerprint, record) for record in records]

    return request
