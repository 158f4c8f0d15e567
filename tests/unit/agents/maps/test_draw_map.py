"""`DrawMap` over fakes and a real lexical index: large maps, and what changes while they are made."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from modestream_client.results import MemoryCloud

from agents.maps import layouts
from agents.maps.draw_map import DrawMap
from schemas.failures import Unavailable
from schemas.messages.retrieval import MapRequest
from schemas.models.vectors import Vector
from schemas.scopes import Selector
from schemas.state.memories import Memory
from schemas.state.modes import VectorSpace
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.maps import draw_map_over
from tests.builders.memories import made
from tests.harnesses.retrieval import InterruptedIndex, RetrievalHarness


class SlowIndex(InterruptedIndex):
    """A vector index that runs a callback when pooled vectors were read."""

    after_reading: Callable[[], object] | None = None

    async def pooled(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Vector]:
        found = await super().pooled(space, memory_ids)
        if self.after_reading is not None:
            self.after_reading()
        return found


class MapHarness(RetrievalHarness):
    """`DrawMap` beside `Retrieve`."""

    def __init__(self, directory: Path) -> None:
        words = SqliteLexicalIndex(directory / "partitions")
        words.open(0)
        self.index = SlowIndex()
        super().__init__(words, self.index)
        self.directory = directory / "maps"
        self.draw_map = self.restarted()

    def restarted(self) -> DrawMap:
        return draw_map_over(self.stores, self.spaces, self.index, self.clock, self.directory)

    async def tell(self, count: int, start: int = 0, **fields: Any) -> list[Memory]:
        turns = [made(f"remark {n} on topic {n % 3}", n, **fields) for n in range(start, start + count)]
        return await self.remember(*turns)

    def forget(self, memory: Memory) -> None:
        self.words.remove(0, memory.memory_id)
        self.records.pop(memory.memory_id, None)

    async def cloud(self, **fields: Any) -> MemoryCloud:
        scope = {"user_id": fields.pop("user", "ana"), "project_id": fields.pop("project", "*")}
        selector = Selector.model_validate(scope)
        [found] = (await self.draw_map.answer(MapRequest(scope=selector, **fields)))[0].clouds
        return found

    async def settled(self, **fields: Any) -> MemoryCloud:
        async with asyncio.timeout(20):
            while not (found := await self.cloud(**fields)).settled:
                await asyncio.sleep(0.05)
        return found


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MapHarness:
    """A world in which ten memories are many."""
    monkeypatch.setattr(layouts, "MAX_AT_ONCE", 9)
    return MapHarness(tmp_path)


def places(cloud: MemoryCloud) -> dict[str, tuple[float, float]]:
    return {point.memory_id: (point.x, point.y) for point in cloud.points}


async def test_large_map_is_projected_until_it_is_laid_out(world: MapHarness) -> None:
    await world.tell(30)
    first = await world.cloud()
    assert first.method == "principal_components"
    assert first.settled is False
    assert len(first.points) == 30
    later = await world.settled()
    assert later.method == "neighbour_graph"
    assert len(later.points) == 30
    assert places(later) != places(first)
    assert await world.cloud() == later


async def test_projection_stays_the_same_until_it_is_replaced(world: MapHarness) -> None:
    turns = await world.tell(30)
    async with world.draw_map.layouts._threads.turn():
        first, second = await world.cloud(), await world.cloud()
        assert first == second
        await world.tell(3, start=100)
        third = await world.cloud()
        assert len(third.points) == 33
        assert places(first).items() < places(third).items()
    assert len((await world.settled()).points) == len(turns) + 3


async def test_map_of_a_fifth_new_is_laid_out_again_from_the_old_one(world: MapHarness) -> None:
    await world.tell(40)
    before = await world.settled()
    await world.tell(11, start=100)
    grown = await world.cloud()
    assert grown.method == "neighbour_graph"
    assert grown.settled is False
    assert places(before).items() < places(grown).items()
    after = await world.settled()
    assert after != grown
    moved = [np.hypot(*np.subtract(places(after)[memory_id], at)) for memory_id, at in places(before).items()]
    assert np.mean(moved) < 0.5


async def test_map_is_kept_for_a_restart(world: MapHarness) -> None:
    await world.tell(30)
    before = await world.settled()
    world.draw_map = world.restarted()
    assert await world.cloud() == before


async def test_memory_forgotten_while_a_map_is_made_is_not_kept(world: MapHarness) -> None:
    turns = await world.tell(30)
    world.index.after_reading = lambda: world.forget(turns[4])
    assert turns[4].memory_id not in places(await world.cloud())
    world.index.after_reading = None
    after = await world.settled()
    assert turns[4].memory_id not in places(after)
    assert len(after.points) == 29
    for file in world.directory.rglob("*.npz"):
        assert turns[4].memory_id.encode() not in np.load(file)["ids"].tolist()


async def test_memory_edited_while_a_map_is_made_is_placed_by_its_new_vector(world: MapHarness) -> None:
    turns = await world.tell(30)
    await world.cloud()
    edited = [turns[4].memory_id]
    while not world.draw_map.layouts._waiting:
        await asyncio.sleep(0)
    await world.draw_map.outdate("ana", edited)
    await world.settled()
    [kept] = world.directory.rglob("*.npz")
    layout = await world.draw_map.layouts._kept.load("ana", kept.stem)
    assert layout is not None
    assert layout.remaining == 29


async def test_forgotten_memory_leaves_a_kept_map(world: MapHarness) -> None:
    turns = await world.tell(12)
    before = await world.settled()
    world.forget(turns[3])
    await world.draw_map.prune("ana")
    [kept] = world.directory.rglob("*.npz")
    assert len(np.load(kept)["ids"]) == 11
    after = await world.cloud()
    assert places(after).items() < places(before).items()


async def test_superseded_memory_is_no_point(world: MapHarness) -> None:
    turns = await world.tell(5)
    replaced = turns[2].model_copy(update={"superseded_by": turns[1].memory_id})
    await world.remember(replaced)
    cloud = await world.cloud()
    assert len(cloud.points) == 4
    assert cloud.left_out == 0


async def test_vectors_lost_from_the_index_are_left_out(world: MapHarness) -> None:
    turns = await world.tell(6)
    for collection in world.index.collections.values():
        collection.points.pop(turns[0].memory_id)
    cloud = await world.cloud()
    assert len(cloud.points) == 5
    assert cloud.left_out == 1


async def test_map_without_its_index_is_unavailable_and_made_later(world: MapHarness) -> None:
    await world.tell(30)
    world.index.down()
    with pytest.raises(Unavailable):
        await world.cloud()
    world.index.up()
    assert len((await world.settled()).points) == 30


async def test_index_lost_while_a_map_waits_is_no_defect(world: MapHarness) -> None:
    await world.tell(30)
    async with world.draw_map.layouts._threads.turn():
        await world.cloud()
        world.index.down()
    await asyncio.sleep(0.05)
    world.index.up()
    assert len((await world.settled()).points) == 30


async def test_model_that_is_not_loaded_hides_no_map(world: MapHarness) -> None:
    await world.tell(6)
    before = await world.cloud()
    world.embedders.missing("general")
    assert await world.cloud() == before


async def test_long_text_is_cut(world: MapHarness) -> None:
    await world.remember(made("a" * 79 + "é" + "b" * 50, 1))
    [point] = (await world.cloud()).points
    assert point.text == "a" * 79 + "é"


async def test_of_too_many_maps_some_are_begun_later(world: MapHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layouts, "MAX_WAITING", 1)
    await world.tell(12)
    await world.remember(*(made(f"another remark {n}", n, user="ben") for n in range(12)))
    async with world.draw_map.layouts._threads.turn():
        await world.cloud()
        others = [await world.cloud(user="ben") for _ in range(2)]
        assert [(other.method, other.settled, len(other.points)) for other in others] == [
            ("principal_components", False, 12)
        ] * 2
        assert len(world.draw_map.layouts._waiting) == 1
    await world.settled()
    assert len((await world.settled(user="ben")).points) == 12
