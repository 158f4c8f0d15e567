"""Points, filters and requests in the classes of the embedded engine.

Enters: points, filters and ids of the port. Leaves: the engine's points, and requests to call with the engine.
Guaranteed: building a request is pure; searches are exact.
"""

from collections.abc import Callable, Sequence
from uuid import UUID

from qdrant_edge import (
    EdgeShard,
    FieldCondition,
    Filter,
    HasIdCondition,
    MatchAny,
    MatchValue,
    Query,
    QueryRequest,
    RangeFloat,
    ScrollRequest,
    SearchParams,
)
from qdrant_edge import Point as EdgePoint

from schemas.models.vectors import Encoded, MemoryFilter, Point
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.shared.qdrant_payload import HASH, TENANT, TIME, match_values, payload_of, point_of
from streams.adapters.vectors.shared.qdrant_vectors import decode_point_vectors, named_vectors

EDGE_EXACT_SEARCH = SearchParams(exact=True)
"""Ignore an HNSW graph, should a collection ever have one: it would be over the points of all users."""

ScrollOffset = int | UUID | str | None
"""The point with which a page starts."""


def edge_point(fingerprint: Fingerprint, point: Point) -> EdgePoint:
    """Return a point in the engine's class."""
    return EdgePoint(point.memory_id, named_vectors(fingerprint, point), payload_of(point))


def edge_filter(where: MemoryFilter, memory_ids: Sequence[str] | None) -> Filter:
    """Return a filter in the engine's classes. Its ranges are floats, exact for the milliseconds of any date."""
    times = RangeFloat(gte=where.since_ms, lt=where.until_ms)
    must = [FieldCondition(field, match=MatchAny(values)) for field, values in match_values(where).items()]
    timed = [FieldCondition(TIME, range=times)] if where.since_ms is not None or where.until_ms is not None else []
    return Filter(must=[*must, *timed, *([] if memory_ids is None else [HasIdCondition(set(memory_ids))])])


def score_query(query: Query, admits: Filter, limit: int) -> Callable[[EdgeShard], list[tuple[object, float]]]:
    """Request the best points and their scores."""
    query_request = QueryRequest(
        limit, query=query, filter=admits, params=EDGE_EXACT_SEARCH, with_payload=False, with_vector=False
    )
    return lambda engine: [(point.id, point.score) for point in engine.query(query_request)]


def hash_query(memory_ids: Sequence[str]) -> Callable[[EdgeShard], dict[str, str]]:
    """Request the content hashes of these points."""

    def request(engine: EdgeShard) -> dict[str, str]:
        records = engine.retrieve(list(memory_ids), [HASH], with_vector=False)
        return {str(record.id): record.payload[HASH] for record in records if record.payload}

    return request


def vector_query(fingerprint: Fingerprint, memory_ids: Sequence[str]) -> Callable[[EdgeShard], dict[str, Encoded]]:
    """Request the vectors of these points."""

    def request(engine: EdgeShard) -> dict[str, Encoded]:
        records = engine.retrieve(list(memory_ids), with_payload=False, with_vector=True)
        return {str(record.id): decode_point_vectors(fingerprint, record.vector) for record in records}

    return request


def id_page_query(
    boundary: str, start: ScrollOffset, limit: int
) -> Callable[[EdgeShard], tuple[list[str], ScrollOffset]]:
    """Request a page of ids of a boundary's points, and the start of the next page."""
    scroll = ScrollRequest(
        offset=start,
        limit=limit,
        filter=Filter(must=[FieldCondition(TENANT, match=MatchValue(boundary))]),
        with_payload=False,
        with_vector=False,
    )

    def request(engine: EdgeShard) -> tuple[list[str], ScrollOffset]:
        records, next_page = engine.scroll(scroll)
        return [str(record.id) for record in records], next_page

    return request


def point_query(fingerprint: Fingerprint, memory_ids: Sequence[str]) -> Callable[[EdgeShard], list[Point]]:
    """Request these points as they were written."""

    def request(engine: EdgeShard) -> list[Point]:
        records = engine.retrieve(list(memory_ids), with_payload=True, with_vector=True)
        return [
            point_of(str(record.id), record.payload or {}, decode_point_vectors(fingerprint, record.vector))
            for record in records
        ]

    return request
