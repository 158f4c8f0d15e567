"""A memory's payload and named vectors in Qdrant, embedded or server, in plain Python, as the packages' classes differ.

Guaranteed: every filter includes the boundary; a space without token vectors and passages has one unnamed vector; every
other space has vectors by name, and a memory without tokens has only the first.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from schemas.models.vectors import Encoded, MemoryFilter, Point, Vector
from schemas.state.modes import Fingerprint

TENANT = "boundary"
"""The tenant field, by which Qdrant groups storage: every read has exactly one boundary."""

PARTITION, TIME, HASH = "partition", "occurred_ms", "content_hash"
"""The integer fields for counts and for time ranges, and the hash of the embedded content, which is not indexed."""

LENGTH = "length"
"""The length of the mean of a cut text's passages, as an engine keeps its direction alone. Others have none."""

KEYWORDS = ("mode", "type")
"""Keyword fields; a filter matches any of several values. So are the fields of the scope (`scope.user_id`)."""


def payload_of(point: Point) -> dict[str, Any]:
    """Return the payload of a point, whose vector is the mean of its passages if it has some."""
    length = {} if point.passages is None else {LENGTH: float(np.linalg.norm(point.vector))}
    return length | {
        TENANT: point.boundary,
        PARTITION: point.partition,
        "scope": dict(point.scope),
        "mode": point.mode,
        "type": point.type,
        TIME: point.occurred_ms,
        HASH: point.content_hash,
    }


def indexed_fields(points: Iterable[Point]) -> list[str]:
    """Return the fields that need an index before these points are written."""
    scope = {_scope_field(name) for point in points for name in point.scope}
    return [TENANT, PARTITION, TIME, *KEYWORDS, *sorted(scope)]


def _scope_field(name: str) -> str:
    return f"scope.{name}"


def match_values(where: MemoryFilter) -> Mapping[str, list[str]]:
    """Return for each field the values of which one must match; an empty list matches no point."""
    fields = {_scope_field(name): values for name, values in where.scope.items()}
    fields |= {"mode": where.modes, "type": where.types}
    return {TENANT: [where.boundary]} | {field: list(values) for field, values in fields.items() if values is not None}


def admits_none(where: MemoryFilter) -> bool:
    """True if some field admits no value, so that no point can match."""
    return not all(match_values(where).values())


def alias_name(mode: str) -> str:
    """Return the alias of a mode's newest collection. No mode or collection has a dot in its name."""
    return f"{mode}.alias"


POOLED, TOKENS = "pooled", "tokens"
"""The vector of the whole text, compared by cosine, and those of its tokens, compared by MaxSim. The latter are
stored as 16-bit floats: on the turns of our chats scores are within 1e-4 of exact ones (exact on a grid of 128ths), and
vectors that are read and written again score the same to the last digit. Turbo8 takes a third less space, is off by
1e-3, and changes scores with each such move."""


def pooled_name(fingerprint: Fingerprint) -> str | None:
    """Return the name of the whole text's vector; None in a space that has no other vectors."""
    return POOLED if fingerprint.token_dim or fingerprint.passages else None


def named_vectors(fingerprint: Fingerprint, point: Point) -> list[float] | dict[str, Any]:
    """Return a point's vectors as lists, which an engine takes faster than arrays."""
    pooled: list[float] = point.vector.tolist()
    if pooled_name(fingerprint) is None:
        return pooled
    if point.tokens is None or not len(point.tokens):
        return {POOLED: pooled}
    return {POOLED: pooled, TOKENS: point.tokens.tolist()}


def decode_point_vectors(fingerprint: Fingerprint, stored: Any) -> Encoded:
    """Return the vectors of a point that was read; no token rows if it has none."""
    named = stored if isinstance(stored, dict) else {POOLED: stored}
    rows = named.get(TOKENS) or np.empty((0, fingerprint.token_dim))
    return Encoded(np.array(named[POOLED], np.float32), np.array(rows, np.float32))


def decode_pooled_vector(stored: Any) -> Vector:
    """Return the pooled vector of a point that was read without its token vectors."""
    return np.array(stored[POOLED] if isinstance(stored, dict) else stored, np.float32)
