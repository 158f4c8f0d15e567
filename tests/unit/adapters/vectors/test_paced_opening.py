"""Opening collections: many at once leave room between them for other work."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded import edge_collections
from streams.adapters.vectors.embedded.edge_collections import MAX_PAUSE_S
from streams.adapters.vectors.embedded.edge_failures import CallMark
from streams.adapters.vectors.embedded.edge_index import EdgeIndex, EdgeResources
from streams.adapters.vectors.embedded.edge_shard import CollectionShard
from tests.harnesses.edge_index import SPACE, memory, points

SPACES = [VectorSpace(f"m{number}", SPACE.fingerprint) for number in range(6)]

HELD_S = 0.03
"""Seconds that a slow opening holds the event loop in the test."""


async def test_openings_of_many_collections_leave_room_between_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = EdgeIndex(tmp_path)
    for number, space in enumerate(SPACES):
        await index.upsert(space, [replace(point, memory_id=memory(number)) for point in points(range(1))])
    await index.close()
    opened: list[str] = []

    def slow_load(path: Path, mark: CallMark) -> CollectionShard:
        time.sleep(HELD_S)
        opened.append(path.name)
        return CollectionShard(path, mark)

    monkeypatch.setattr(edge_collections, "CollectionShard", slow_load)
    index = EdgeIndex(tmp_path)
    between: list[int] = []

    async def other_work() -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        between.append(len(opened))

    async def others() -> None:
        while len(opened) < len(SPACES):
            await other_work()

    asked = [index.hashes(space, [memory(number)]) for number, space in enumerate(SPACES)]
    *found, _ = await asyncio.gather(*asked, others())
    assert all(found)
    assert set(range(1, len(SPACES))) <= set(between)
    await index.close()


async def test_the_next_opening_waits_for_requests_under_way(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, points(range(1)))
    await index.close()
    waits: list[float] = []

    async def until_quiet(at_most_s: float) -> None:
        waits.append(at_most_s)

    index = EdgeIndex(tmp_path, EdgeResources(until_quiet=until_quiet))
    for _ in range(2):
        assert await index.hashes(SPACE, [memory(0)])
    assert len(waits) == 1, "only an opening is followed by a wait"
    assert 0 < waits[0] <= MAX_PAUSE_S
    await index.close()
