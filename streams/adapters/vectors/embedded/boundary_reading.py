"""Reads all vectors of a boundary from disk: the engine lists the points, the packed store has their vectors.

Enters: an open collection and a boundary. Leaves: its vectors in memory; None if they can't be packed. Vectors that are
missing from the store (of an older format, or lost) are read from the engine, 100 times slower, and packed.
"""

import asyncio
from collections.abc import Sequence

from streams.adapters.vectors.embedded.boundary_vectors import BoundaryVectors
from streams.adapters.vectors.embedded.edge_packing import PointRow, pack_point, unpack_vectors
from streams.adapters.vectors.embedded.edge_requests import ScrollOffset, id_page_query, point_query
from streams.adapters.vectors.embedded.edge_shard import CollectionShard, translate_engine_errors
from streams.adapters.vectors.shared.vector_contract import VECTOR_BATCH_SIZE
from streams.batching import batches

POINT_PAGE_SIZE = 1024
"""Points of one read, which holds the GIL for 10 ms."""


async def read_boundary(
    shard: CollectionShard, boundary: str, max_points: int, *, yields: bool
) -> BoundaryVectors | None:
    """Return all points of a boundary; None if there are more than `max_points`, or one can't be packed.

    `yields` lets other tasks run between pages.
    """
    missing = await _point_ids(shard, boundary, max_points, yields=yields)
    if missing is None:
        return None
    vectors = BoundaryVectors(shard.fingerprint)
    for page in batches(shard.packed.of(boundary), POINT_PAGE_SIZE):
        found = [row for row in page if row.memory_id in missing]
        missing.difference_update(row.memory_id for row in found)
        if found:
            vectors.put(found)
        await _pause(yields=yields)
    for memory_ids in batches(sorted(missing), VECTOR_BATCH_SIZE):
        rows = _repack(shard, memory_ids)
        if rows is None:
            return None
        # Empty if all of them were deleted meanwhile.
        if rows:
            vectors.put(rows)
        await _pause(yields=yields)
    return vectors


async def _point_ids(shard: CollectionShard, boundary: str, max_points: int, *, yields: bool) -> set[str] | None:
    found: set[str] = set()
    offset: ScrollOffset = None
    while True:
        page, offset = shard.ask(id_page_query(boundary, offset, POINT_PAGE_SIZE))
        found.update(page)
        if len(found) > max_points:
            return None
        if offset is None:
            return found
        await _pause(yields=yields)


def _repack(shard: CollectionShard, memory_ids: Sequence[str]) -> list[PointRow] | None:
    """Read these points from the engine and pack them; None if one can't be packed."""
    points = shard.ask(point_query(shard.fingerprint, memory_ids))
    packed = [(point, pack_point(shard.fingerprint, point)) for point in points]
    translate_engine_errors(lambda: shard.packed.put(packed))
    rows = [PointRow.of(point, unpack_vectors(shard.fingerprint, data)) for point, data in packed if data is not None]
    return rows if len(rows) == len(points) else None


async def _pause(*, yields: bool) -> None:
    if yields:
        await asyncio.sleep(0)
