"""Reads all vectors of a boundary off the disk: which points there are says the engine, their vectors were packed.

Enters: an open collection and a boundary. Leaves: its vectors as they are held; nothing where they can't be. What is
not packed (of an earlier form, or lost) is read from the engine, which takes a hundred times as long, and packed.
"""

import asyncio
from collections.abc import Sequence

from streams.adapters.vectors.embedded.edge_boundary import BoundaryVectors
from streams.adapters.vectors.embedded.edge_packing import pack_point, unpack_vectors
from streams.adapters.vectors.embedded.edge_requests import ScrollOffset, id_page_query, point_query
from streams.adapters.vectors.embedded.edge_rows import PointRow
from streams.adapters.vectors.embedded.edge_shard import CollectionShard, translate_engine_errors
from streams.adapters.vectors.shared.vector_contract import VECTOR_BATCH_SIZE
from streams.batching import batches

POINT_PAGE_SIZE = 1024
"""Points that are read in one go, which holds the interpreter for 10 ms."""


async def read_boundary(
    shard: CollectionShard, boundary: str, max_points: int, *, yields: bool
) -> BoundaryVectors | None:
    """All points of a boundary; None where there are more than `max_points`, or some can't be held."""
    missing = await _ids(shard, boundary, max_points, lets_others_run=yields)
    if missing is None:
        return None
    held = BoundaryVectors(shard.fingerprint)
    for page in batches(shard.packed.of(boundary), POINT_PAGE_SIZE):
        there = [row for row in page if row.memory_id in missing]
        missing.difference_update(row.memory_id for row in there)
        if there:
            held.put(there)
        await _pause(lets_others_run=yields)
    for some in batches(sorted(missing), VECTOR_BATCH_SIZE):
        rows = _repacked(shard, some)
        if rows is None:
            return None
        # All of them may have been deleted since.
        if rows:
            held.put(rows)
        await _pause(lets_others_run=yields)
    return held


async def _ids(shard: CollectionShard, boundary: str, most: int, *, lets_others_run: bool) -> set[str] | None:
    found: set[str] = set()
    following: ScrollOffset = None
    while True:
        some, following = shard.ask(id_page_query(boundary, following, POINT_PAGE_SIZE))
        found.update(some)
        if len(found) > most:
            return None
        if following is None:
            return found
        await _pause(lets_others_run=lets_others_run)


def _repacked(shard: CollectionShard, memory_ids: Sequence[str]) -> list[PointRow] | None:
    """These points as the engine has them, packed from now on; None where one can't be packed."""
    points = shard.ask(point_query(shard.fingerprint, memory_ids))
    taken = [(point, pack_point(shard.fingerprint, point)) for point in points]
    translate_engine_errors(lambda: shard.packed.put(taken))
    rows = [PointRow.of(point, unpack_vectors(shard.fingerprint, data)) for point, data in taken if data is not None]
    return rows if len(rows) == len(points) else None


async def _pause(*, lets_others_run: bool) -> None:
    if lets_others_run:
        await asyncio.sleep(0)
