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
from schemas.vectors import Encoded, Point, Where
from streams.adapters.vectors.edge_boundary import BoundaryVectors, Kind
from streams.adapters.vectors.edge_packing import PACKED, unpacked
from streams.adapters.vectors.qdrant_payload import HASH, TENANT, TIME, admitted, payload
from streams.adapters.vectors.qdrant_vectors import encoded, named_vectors

EXACT = SearchParams(exact=True)
"""No graph decides what is found, should a collection ever have one: it would be made of all users' points."""

Start = int | UUID | str | None
"""From which point on a page is read."""


def edge_point(fingerprint: Fingerprint, point: Point, string: str | None) -> EdgePoint:
    """Give a point in the engine's class, with its packed vectors where there is such a string."""
    beside = payload(point) if string is None else payload(point) | {PACKED: string}
    return EdgePoint(point.memory_id, named_vectors(fingerprint, point), beside)


def edge_filter(where: Where, memory_ids: Sequence[str] | None) -> Filter:
    """Give a filter in the engine's classes; its ranges are of floats, exact for milliseconds far beyond any date."""
    times = RangeFloat(gte=where.since_ms, lt=where.until_ms)
    must = [FieldCondition(field, match=MatchAny(words)) for field, words in admitted(where).items()]
    timed = [FieldCondition(TIME, range=times)] if where.since_ms is not None or where.until_ms is not None else []
    return Filter(must=[*must, *timed, *([] if memory_ids is None else [HasIdCondition(set(memory_ids))])])


def scores_of(query: Query, admits: Filter, limit: int) -> Callable[[EdgeShard], list[tuple[object, float]]]:
    """Give the question for the best points and their scores."""
    request = QueryRequest(limit, query=query, filter=admits, params=EXACT, with_payload=False, with_vector=False)
    return lambda engine: [(point.id, point.score) for point in engine.query(request)]


def hashes_of(memory_ids: Sequence[str]) -> Callable[[EdgeShard], dict[str, str]]:
    """Give the question for the content hashes of these points."""

    def question(engine: EdgeShard) -> dict[str, str]:
        records = engine.retrieve(list(memory_ids), [HASH], with_vector=False)
        return {str(record.id): record.payload[HASH] for record in records if record.payload}

    return question


def vectors_of(fingerprint: Fingerprint, memory_ids: Sequence[str]) -> Callable[[EdgeShard], dict[str, Encoded]]:
    """Give the question for the vectors of these points."""

    def question(engine: EdgeShard) -> dict[str, Encoded]:
        records = engine.retrieve(list(memory_ids), with_payload=False, with_vector=True)
        return {str(record.id): encoded(fingerprint, record.vector) for record in records}

    return question


def page_of(
    fingerprint: Fingerprint, boundary: str, start: Start, limit: int, held: BoundaryVectors
) -> Callable[[EdgeShard], tuple[bool, Start]]:
    """Give the question for so many points of a boundary, from a point on, which puts them to those that are held.

    The answer says whether all could be, and where the next page begins; None after the last.
    """
    request = ScrollRequest(
        offset=start,
        limit=limit,
        filter=Filter(must=[FieldCondition(TENANT, match=MatchValue(boundary))]),
        # To choose fields takes the engine seven times as long.
        with_payload=True,
        with_vector=False,
    )

    def question(engine: EdgeShard) -> tuple[bool, Start]:
        records, following = engine.scroll(request)
        for record in records:
            beside = record.payload or {}
            if PACKED not in beside:
                return False, None
            kind = Kind.of(beside["mode"], beside["type"], beside["scope"])
            held.put(str(record.id), kind, beside[TIME], unpacked(fingerprint, beside[PACKED]))
        return True, following

    return question
