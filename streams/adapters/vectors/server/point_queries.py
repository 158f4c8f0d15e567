"""Queries of points as plain values, before they are encoded for a transport."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from qdrant_client import models

from schemas.models.vectors import Matrix, MemoryFilter, Point, Vector
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.server.stored_points import MEMORY, PART
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
