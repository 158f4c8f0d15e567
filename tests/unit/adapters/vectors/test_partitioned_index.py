"""Partitions of the embedded index: each is handed over with all it has, and all have one bound together."""

import asyncio
from pathlib import Path

import pytest

from schemas.models.vectors import MemoryFilter, Point
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded.boundary_cache import BoundaryCache
from streams.adapters.vectors.embedded.edge_collections import OpenShards
from streams.adapters.vectors.embedded.edge_index import EdgeIndex, EdgeResources, PartitionedIndex
from tests.builders.spaces import space_of
from tests.fakes.vector_indexes import SPACE, X, ids, memory, point, vector


def of(partition: int, *numbers: int) -> list[Point]:
    return [point(number, partition=partition, boundary=f"u{partition}") for number in numbers]


async def found(index: PartitionedIndex, partition: int, space: VectorSpace = SPACE) -> list[str]:
    return ids(await index.at(partition).search(space, X, MemoryFilter(f"u{partition}"), 10))


async def test_released_partition_is_whole_at_its_next_owner(tmp_path: Path) -> None:
    held = {0, 1}
    first, second = PartitionedIndex(tmp_path, is_held=held.__contains__), PartitionedIndex(tmp_path)
    for partition in held:
        await first.at(partition).upsert(SPACE, of(partition, partition, 10 + partition))
    with pytest.raises(RuntimeError, match="another process owns"):
        second.at(1)
    held.remove(1)
    await first.release(1)
    assert await found(second, 1) == [memory(1), memory(11)]
    assert await found(first, 0) == [memory(0), memory(10)]
    with pytest.raises(KeyError):
        first.at(1)
    await first.close()
    await second.close()


async def test_partition_that_returns_is_read_again(tmp_path: Path) -> None:
    first, second = PartitionedIndex(tmp_path), PartitionedIndex(tmp_path)
    await first.at(0).upsert(SPACE, of(0, 1))
    assert await found(first, 0) == [memory(1)]
    await first.release(0)
    await second.at(0).upsert(SPACE, of(0, 2))
    await second.release(0)
    assert await found(first, 0) == [memory(1), memory(2)]
    await first.close()


async def test_read_that_ends_after_the_release_is_not_kept(tmp_path: Path) -> None:
    index = PartitionedIndex(tmp_path)
    await index.at(0).upsert(SPACE, of(0, *range(600)))
    await index.release(0)
    reading = asyncio.create_task(found(index, 0))
    await asyncio.sleep(0)
    await index.release(0)
    with pytest.raises(KeyError):
        await reading
    await index.at(0).delete(SPACE, [memory(number) for number in range(598)])
    assert await found(index, 0) == [memory(598), memory(599)]
    await index.close()


async def test_open_collections_are_bounded_over_all_partitions(tmp_path: Path) -> None:
    index = PartitionedIndex(tmp_path, EdgeResources(BoundaryCache(max_points=0), open_shards=OpenShards(3)))
    spaces = [space_of(mode=mode) for mode in ("code", "general", "journal")]
    for partition in range(3):
        for space in spaces:
            await index.at(partition).upsert(space, of(partition, partition))
    assert sum(is_open(index.at(partition), space) for partition in range(3) for space in spaces) == 3
    for partition in range(3):
        for space in spaces:
            assert await found(index, partition, space) == [memory(partition)]
    assert sum(is_open(index.at(partition), space) for partition in range(3) for space in spaces) == 3
    await index.close()


def is_open(index: EdgeIndex, space: VectorSpace) -> bool:
    return index._collections.is_open(space)


async def test_same_memory_id_has_a_vector_in_each_partition(tmp_path: Path) -> None:
    index = PartitionedIndex(tmp_path)
    await index.at(0).upsert(SPACE, of(0, 1))
    await index.at(1).upsert(SPACE, [point(1, partition=1, boundary="u1", vector=vector(0, 1, 0, 0))])
    for _ in range(2):
        scores = [(await index.at(each).search(SPACE, X, MemoryFilter(f"u{each}"), 1))[0].score for each in (0, 1)]
        assert scores == [1.0, 0.0]
    await index.close()
