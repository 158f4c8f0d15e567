"""Read vectors of a boundary or of a collection: packed rows while it is at rest, else as the engine has them."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import numpy as np

from schemas.models.vectors import MemoryFilter, Nearest
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded.boundary_vectors import BoundaryVectors
from streams.adapters.vectors.embedded.edge_requests import ScrollOffset, id_page_query, point_query
from streams.adapters.vectors.embedded.edge_shard import CollectionShard
from streams.adapters.vectors.embedded.packed_rows import PointRow, pack_point, unpack_vectors
from streams.adapters.vectors.embedded.packed_vectors import PackedVectors
from streams.adapters.vectors.embedded.scoring import best_of
from streams.adapters.vectors.embedded.text_columns import TextQuestion, TextScores
from streams.adapters.vectors.embedded.token_cache import TokenCache
from streams.adapters.vectors.shared.vector_contract import VECTOR_BATCH_SIZE
from streams.batching import batches

Pause = Callable[[], Awaitable[object]]
"""Lets others be served."""

POINT_PAGE_SIZE = 1024
"""Points of one read, which holds the GIL for 10 ms."""


class TooManyPoints(Exception):
    """A boundary has more points than are read."""


async def read_packed(
    packed: PackedVectors, space: VectorSpace, boundary: str, max_points: int, *, yields: bool
) -> BoundaryVectors | None:
    """Return all points of a boundary of a complete collection; None if one can't be packed.

    `yields` lets other tasks run between pages. Raises TooManyPoints.
    """
    vectors = BoundaryVectors(space.fingerprint)
    for page in batches(packed.of(space, boundary), POINT_PAGE_SIZE):
        rows = [row for _, row in page if row is not None]
        if len(vectors.rows) + len(page) > max_points:
            raise TooManyPoints
        if len(rows) < len(page):
            return None
        vectors.put(rows)
        await _pause(yields=yields)
    return vectors


async def read_boundary(
    shard: CollectionShard, packed: PackedVectors, space: VectorSpace, boundary: str, max_points: int, *, yields: bool
) -> BoundaryVectors | None:
    """Return all points of a boundary, as the engine has them; None if one can't be packed.

    `yields` lets other tasks run between pages. Raises TooManyPoints.
    """
    missing = await point_ids(shard, boundary, max_points, partial(_pause, yields=yields))
    vectors = BoundaryVectors(space.fingerprint)
    for page in batches(packed.of(space, boundary), POINT_PAGE_SIZE):
        found = [row for memory_id, row in page if row is not None and memory_id in missing]
        missing.difference_update(row.memory_id for row in found)
        if found:
            vectors.put(found)
        await _pause(yields=yields)
    for memory_ids in batches(sorted(missing), VECTOR_BATCH_SIZE):
        rows = _repack(shard, packed, space, memory_ids)
        if rows is None:
            return None
        # Empty if all of them were deleted meanwhile.
        if rows:
            vectors.put(rows)
        await _pause(yields=yields)
    return vectors


async def read_ids(shard: CollectionShard, boundary: str) -> list[str]:
    """Return the ids of all points of a boundary."""
    return sorted(await point_ids(shard, boundary, sys.maxsize, partial(_pause, yields=True)))


async def score_rows(
    tokens: TokenCache, space: VectorSpace, question: TextQuestion, where: MemoryFilter, memory_ids: Sequence[str]
) -> tuple[Nearest, list[str]]:
    """Score packed texts page by page; also return the ids whose vectors are not packed.

    Each id comes once. What is found are rows of `memory_ids`.
    """
    pages: list[TextScores] = []
    unpacked: list[str] = []
    for number, page in enumerate(batches(memory_ids, POINT_PAGE_SIZE)):
        scored, missing = tokens.scores(space, where, question, page)
        unpacked += missing
        pages.append(scored.at(number * POINT_PAGE_SIZE + np.arange(len(page))))
        await asyncio.sleep(0)
    found = TextScores.joined(pages)
    return best_of(memory_ids, found.rows, found.scores, len(memory_ids), found.passages), unpacked


async def point_ids(shard: CollectionShard, boundary: str, max_points: int, pause: Pause) -> set[str]:
    """Return the ids of all points of a boundary, with a pause after each page. Raises TooManyPoints."""
    found: set[str] = set()
    offset: ScrollOffset = None
    while True:
        page, offset = shard.ask(id_page_query(boundary, offset, POINT_PAGE_SIZE))
        found.update(page)
        if len(found) > max_points:
            raise TooManyPoints
        if offset is None:
            return found
        await pause()


def _repack(
    shard: CollectionShard, packed: PackedVectors, space: VectorSpace, memory_ids: Sequence[str]
) -> list[PointRow] | None:
    """Read these points from the engine and pack them; None if one can't be packed."""
    points = shard.ask(point_query(space.fingerprint, memory_ids))
    data = [pack_point(space.fingerprint, point) for point in points]
    packed.put(space.collection, zip(points, data, strict=True))
    rows = [
        PointRow.of(point, unpack_vectors(space.fingerprint, one))
        for point, one in zip(points, data, strict=True)
        if one is not None
    ]
    return rows if len(rows) == len(points) else None


async def _pause(*, yields: bool) -> None:
    if yields:
        await asyncio.sleep(0)
