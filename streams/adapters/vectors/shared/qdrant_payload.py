"""What stands beside a vector in Qdrant, embedded or server: payload fields, which are indexed, and filters over them.

In go points and `MemoryFilter`; out come payloads, field names and what each field must match, in plain Python: the two
Qdrant packages have the same concepts in different classes. Guaranteed: a boundary is part of every filter.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from schemas.vectors import Encoded, MemoryFilter, Point

TENANT = "boundary"
"""The keyword field that Qdrant groups storage and graphs by: every read has exactly one."""

PARTITION = "partition"
"""The integer field that is counted by."""

TIME = "occurred_ms"
"""The integer field that ranges are asked of."""

HASH = "content_hash"
"""What a point was made of; it has no index."""

KEYWORDS = ("mode", "type")
"""Fields that match any of several words. The fields of the scope are such fields too (`scope.user_id`)."""


def payload_of(point: Point) -> dict[str, Any]:
    """Give what is kept beside the vector."""
    return {
        TENANT: point.boundary,
        PARTITION: point.partition,
        "scope": dict(point.scope),
        "mode": point.mode,
        "type": point.type,
        TIME: point.occurred_ms,
        HASH: point.content_hash,
    }


def point_of(memory_id: str, kept: Mapping[str, Any], vectors: Encoded) -> Point:
    """Give the point that has this payload."""
    return Point(
        memory_id,
        vectors.pooled,
        kept[TENANT],
        kept[PARTITION],
        kept["scope"],
        kept["mode"],
        kept["type"],
        kept[TIME],
        kept[HASH],
        vectors.tokens,
    )


def indexed_fields(points: Iterable[Point]) -> list[str]:
    """Give every field that needs an index before these points are written."""
    scope = {scope_field(name) for point in points for name in point.scope}
    return [TENANT, PARTITION, TIME, *KEYWORDS, *sorted(scope)]


def scope_field(name: str) -> str:
    """Give the path of a scope field, such as `scope.user_id`."""
    return f"scope.{name}"


def match_values(where: MemoryFilter) -> Mapping[str, list[str]]:
    """Give for each field the words of which one must match; an empty list means that no point can."""
    fields = {scope_field(name): values for name, values in where.scope.items()}
    fields |= {"mode": where.modes, "type": where.types}
    return {TENANT: [where.boundary]} | {field: list(words) for field, words in fields.items() if words is not None}


def admits_none(where: MemoryFilter) -> bool:
    """Tell that some field may have no value at all, so that no engine need be asked."""
    return not all(match_values(where).values())


def alias_name(mode: str) -> str:
    """Name what points at a mode's newest collection. No mode or collection has a dot in its name."""
    return f"{mode}.alias"
