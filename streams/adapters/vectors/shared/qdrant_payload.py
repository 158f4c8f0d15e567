"""The payload of a vector in Qdrant, embedded or server: its fields, their indexes, and filters over them.

Enters: points and `MemoryFilter`. Leaves: payloads, field names and the values that each field must match, in plain
Python, as the two Qdrant packages have different classes. Guaranteed: every filter includes the boundary.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from schemas.models.vectors import Encoded, MemoryFilter, Point

TENANT = "boundary"
"""The tenant field, by which Qdrant groups storage: every read has exactly one boundary."""

PARTITION = "partition"
"""The integer field for counts."""

TIME = "occurred_ms"
"""The integer field for time ranges."""

HASH = "content_hash"
"""The hash of the embedded content; not indexed."""

KEYWORDS = ("mode", "type")
"""Keyword fields; a filter matches any of several values. So are the fields of the scope (`scope.user_id`)."""


def payload_of(point: Point) -> dict[str, Any]:
    """Return a point's payload."""
    return {
        TENANT: point.boundary,
        PARTITION: point.partition,
        "scope": dict(point.scope),
        "mode": point.mode,
        "type": point.type,
        TIME: point.occurred_ms,
        HASH: point.content_hash,
    }


def point_of(memory_id: str, payload: Mapping[str, Any], vectors: Encoded) -> Point:
    """Return the point with this payload."""
    return Point(
        memory_id,
        vectors.pooled,
        payload[TENANT],
        payload[PARTITION],
        payload["scope"],
        payload["mode"],
        payload["type"],
        payload[TIME],
        payload[HASH],
        vectors.tokens,
    )


def indexed_fields(points: Iterable[Point]) -> list[str]:
    """Return the fields that need an index before these points are written."""
    scope = {scope_field(name) for point in points for name in point.scope}
    return [TENANT, PARTITION, TIME, *KEYWORDS, *sorted(scope)]


def scope_field(name: str) -> str:
    """Return the path of a scope field, such as `scope.user_id`."""
    return f"scope.{name}"


def match_values(where: MemoryFilter) -> Mapping[str, list[str]]:
    """Return for each field the values of which one must match; an empty list matches no point."""
    fields = {scope_field(name): values for name, values in where.scope.items()}
    fields |= {"mode": where.modes, "type": where.types}
    return {TENANT: [where.boundary]} | {field: list(values) for field, values in fields.items() if values is not None}


def admits_none(where: MemoryFilter) -> bool:
    """True if some field admits no value, so that no point can match."""
    return not all(match_values(where).values())


def alias_name(mode: str) -> str:
    """Return the alias of a mode's newest collection. No mode or collection has a dot in its name."""
    return f"{mode}.alias"
