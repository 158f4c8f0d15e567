"""Reads all vectors of a boundary off the disk: which points there are says the engine, their vectors were packed.

Enters: an open collection and a boundary. Leaves: its vectors as they are held; nothing where they can't be. What is
not packed (of an earlier form, or lost) is read from the engine, which takes a hundred times as long, and packed.
"""

import asyncio
from collections.abc import Sequence

from streams.adapters.vectors.embedded.edge_boundary import BoundaryVectors
from streams.adapters.vectors.embedded.edge_packing import packed, unpacked
from streams.adapters.vectors.embedded.edge_requests import Start, ids_of, points_of
from streams.adapters.vectors.embedded.edge_rows import Row
from streams.adapters.vectors.embedded.edge_shard import CollectionShard, translated
from streams.adapters.vectors.shared.vector_contract import FETCHED
from streams.batching import batches

PAGE = 1024
"""Points that are read in one go, which holds the interpreter for 10 ms."""


async def read_boundary(
    shard: CollectionShard, boundary: str, most: int, *, lets_others_run: bool
) -> BoundaryVectors | None:
    """All points of a boundary; None where there are more than `most`, or some can't be held."""
    missing = await _ids(shard, boundary, most, lets_others_run=lets_others_run)
    if missing is None:
        return None
    held = BoundaryVectors(shard.fingerprint)
    for page in batches(shard.packed.of(boundary), PAGE):
        there = [row for row in page if row.memory_id in missing]
        missing.difference_update(row.memory_id for row in there)
        if there:
            held.put(there)
        await _pause(lets_others_run=lets_others_run)
    for some in batches(sorted(missing), FETCHED):
        rows = _repacked(shard, some)
        if rows is None:
            return None
        # All of them may have been deleted since.
        if rows:
            held.put(rows)
        await _pause(lets_others_run=lets_others_run)
    return held


async def _ids(shard: CollectionShard, boundary: str, most: int, *, lets_others_run: bool) -> set[str] | None:
    found: set[str] = set()
    following: Start = None
    while True:
        some, following = shard.ask(ids_of(boundary, following, PAGE))
        found.update(some)
        if len(found) > most:
            return None
        if following is None:
            return found
        await _pause(lets_others_run=lets_others_run)


def _repacked(shard: CollectionShard, memory_ids: Sequence[str]) -> list[Row] | None:
    """These points as the engine has them, packed from now on; None where one can't be packed."""
    points = shard.ask(points_of(shard.fingerprint, memory_ids))
    taken = [(point, packed(shard.fingerprint, point)) for point in points]
    translated(lambda: shard.packed.put(taken))
    rows = [Row.of(point, unpacked(shard.fingerprint, data)) for point, data in taken if data is not None]
    return rows if len(rows) == len(points) else None


async def _pause(*, lets_others_run: bool) -> None:
    if lets_others_run:
        await asyncio.sleep(0)
