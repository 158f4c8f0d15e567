"""What is asked of the embedded engine, in its own classes.

In go points, filters and ids of the port; out come the engine's points and questions to it. Guaranteed: pure but for
the questions, which are put to an engine by whoever holds it; searches are exact.
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

from schemas.modes import Fingerprint
from schemas.vectors import Encoded, MemoryFilter, Point
from streams.adapters.vectors.shared.qdrant_payload import HASH, TENANT, TIME, match_values, payload_of, point_of
from streams.adapters.vectors.shared.qdrant_vectors import decode_point_vectors, named_vectors

EDGE_EXACT_SEARCH = SearchParams(exact=True)
"""No graph decides what is found, should a collection ever have one: it would be made of all users' points."""

ScrollOffset = int | UUID | str | None
"""From which point on a page is read."""


def edge_point(fingerprint: Fingerprint, point: Point) -> EdgePoint:
    """Give a point in the engine's class."""
    return EdgePoint(point.memory_id, named_vectors(fingerprint, point), payload_of(point))


def edge_filter(where: MemoryFilter, memory_ids: Sequence[str] | None) -> Filter:
    """Give a filter in the engine's classes; its ranges are of floats, exact for milliseconds far beyond any date."""
    times = RangeFloat(gte=where.since_ms, lt=where.until_ms)
    must = [FieldCondition(field, match=MatchAny(words)) for field, words in match_values(where).items()]
    timed = [FieldCondition(TIME, range=times)] if where.since_ms is not None or where.until_ms is not None else []
    return Filter(must=[*must, *timed, *([] if memory_ids is None else [HasIdCondition(set(memory_ids))])])


def score_query(query: Query, admits: Filter, limit: int) -> Callable[[EdgeShard], list[tuple[object, float]]]:
    """Give the question for the best points and their scores."""
    request = QueryRequest(
        limit, query=query, filter=admits, params=EDGE_EXACT_SEARCH, with_payload=False, with_vector=False
    )
    return lambda engine: [(point.id, point.score) for point in engine.query(request)]


def hash_query(memory_ids: Sequence[str]) -> Callable[[EdgeShard], dict[str, str]]:
    """Give the question for the content hashes of these points."""

    def question(engine: EdgeShard) -> dict[str, str]:
        records = engine.retrieve(list(memory_ids), [HASH], with_vector=False)
        return {str(record.id): record.payload[HASH] for record in records if record.payload}

    return question


def vector_query(fingerprint: Fingerprint, memory_ids: Sequence[str]) -> Callable[[EdgeShard], dict[str, Encoded]]:
    """Give the question for the vectors of these points."""

    def question(engine: EdgeShard) -> dict[str, Encoded]:
        records = engine.retrieve(list(memory_ids), with_payload=False, with_vector=True)
        return {str(record.id): decode_point_vectors(fingerprint, record.vector) for record in records}

    return question


def id_page_query(
    boundary: str, start: ScrollOffset, limit: int
) -> Callable[[EdgeShard], tuple[list[str], ScrollOffset]]:
    """Give the question for the ids of so many points of a boundary, from one on, and where the next page begins."""
    request = ScrollRequest(
        offset=start,
        limit=limit,
        filter=Filter(must=[FieldCondition(TENANT, match=MatchValue(boundary))]),
        with_payload=False,
        with_vector=False,
    )

    def question(engine: EdgeShard) -> tuple[list[str], ScrollOffset]:
        records, following = engine.scroll(request)
        return [str(record.id) for record in records], following

    return question


def point_query(fingerprint: Fingerprint, memory_ids: Sequence[str]) -> Callable[[EdgeShard], list[Point]]:
    """Give the question for these points as they were written."""

    def question(engine: EdgeShard) -> list[Point]:
        records = engine.retrieve(list(memory_ids), with_payload=True, with_vector=True)
        return [
            point_of(str(record.id), record.payload or {}, decode_point_vectors(fingerprint, record.vector))
            for record in records
        ]

    return question
