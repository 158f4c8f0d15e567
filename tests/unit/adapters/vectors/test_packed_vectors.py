"""Packed vectors of the embedded index: sorted by boundary, and derived from the engine."""

import asyncio
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from agents.ports.indexes import INCOMPLETE
from schemas.failures import Unavailable
from schemas.models.vectors import MemoryFilter, Point
from schemas.state.modes import VectorSpace
from streams.adapters.vectors.embedded import packed_vectors
from streams.adapters.vectors.embedded.edge_collections import PACKED_DIR
from streams.adapters.vectors.embedded.edge_index import EdgeIndex
from streams.adapters.vectors.embedded.packed_vectors import PackedVectors, pack_point
from tests.builders.spaces import space_of
from tests.fakes.vector_indexes import memory, point
from tests.harnesses.edge_index import ONES, points, run_child
from tests.harnesses.edge_index import SPACE as PLAIN

SPACE = space_of(dim=4, token_dim=2)
POOLED = space_of(dim=4)
NAME = SPACE.collection
QUESTION = np.array([1, 0, 0, 0], np.float32)


def made(number: int, boundary: str = "u1") -> Point:
    vector = np.array([1, number, 0, 0], np.float32)
    return point(number, boundary=boundary, vector=vector, tokens=np.full((number % 3, 2), 0.5, np.float32))


def pooled(number: int) -> Point:
    return replace(made(number), tokens=None)


def written(store: PackedVectors, *points: Point) -> None:
    store.put(NAME, [(point, pack_point(SPACE.fingerprint, point)) for point in points])


def ids(store: PackedVectors, boundary: str) -> list[str]:
    return [memory_id for memory_id, row in store.of(SPACE, boundary) if row is not None]


async def answers(index: EdgeIndex) -> dict[tuple[str, str], float]:
    """Cosines and MaxSim scores by memory."""
    near = await index.search(SPACE, QUESTION, MemoryFilter("u1"), 100)
    late = await index.maxsim(SPACE, np.ones((1, 2), np.float32), MemoryFilter("u1"), 100)
    found = [("near", hit) for hit in near] + [("late", hit) for hit in late]
    return {(way, memory.memory_id): memory.score for way, memory in found}


def failed(*_: object) -> None:
    raise OSError("no space left")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PackedVectors]:
    opened = PackedVectors(tmp_path / "store")
    yield opened
    opened.close()


def test_row_equals_the_written_point(store: PackedVectors) -> None:
    written(store, made(2))
    [(_, row)] = store.of(SPACE, "u1")
    assert row is not None
    assert row.memory_id == memory(2)
    assert row.kind.mode == made(2).mode
    assert row.kind.type == made(2).type
    assert row.occurred_ms == made(2).occurred_ms
    assert dict(row.kind.scope) == made(2).scope
    assert row.vectors.pooled == pytest.approx(np.array([1, 2, 0, 0]) / 5**0.5, rel=2**-11)
    assert row.vectors.tokens.tolist() == [[64, 64], [64, 64]]


def test_boundaries_with_a_common_prefix_are_separate(store: PackedVectors) -> None:
    written(store, made(1, "u"), made(2, "u1"), made(3, "u1\x00"), made(4, "ü1"))
    assert [ids(store, name) for name in ("u", "u1", "u1\x00", "ü1", "u2")] == [
        [memory(1)],
        [memory(2)],
        [memory(3)],
        [memory(4)],
        [],
    ]


def test_moved_point_has_one_row(store: PackedVectors) -> None:
    written(store, made(1), made(2))
    written(store, made(1, "u2"), made(2))
    assert ids(store, "u1") == [memory(2)]
    assert ids(store, "u2") == [memory(1)]


def test_removed_point_has_no_row_and_an_unpackable_one_an_empty_row(store: PackedVectors) -> None:
    written(store, made(1), made(2), made(3))
    store.remove(NAME, [memory(1), memory(9)])
    store.put(NAME, [(made(2), None)])
    assert ids(store, "u1") == [memory(3)]
    assert dict(store.of(SPACE, "u1"))[memory(2)] is None


def test_collections_are_apart_and_dropped_apart(store: PackedVectors) -> None:
    other = VectorSpace("other", SPACE.fingerprint)
    for name in (NAME, other.collection):
        store.begin(name)
        store.put(name, [(made(1), pack_point(SPACE.fingerprint, made(1)))])
    store.remove(other.collection, [memory(2)])
    store.drop(NAME)
    assert not store.is_complete(NAME)
    assert ids(store, "u1") == []
    assert store.is_complete(other.collection)
    assert len(list(store.of(other, "u1"))) == 1


def test_broken_store_is_replaced(tmp_path: Path) -> None:
    store = PackedVectors(tmp_path)
    store.begin(NAME)
    written(store, made(1))
    store.close()
    (tmp_path / "CURRENT").write_text("nonsense\n")
    again = PackedVectors(tmp_path)
    assert not again.is_complete(NAME)
    assert ids(again, "u1") == []
    written(again, made(2))
    assert ids(again, "u1") == [memory(2)]
    again.close()


def test_lack_of_the_system_removes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = PackedVectors(tmp_path)
    written(store, made(1))
    store.close()
    with monkeypatch.context() as full:
        full.setattr(packed_vectors, "Rdict", Mock(side_effect=Exception("IO error: No space left on device")))
        with pytest.raises(Unavailable):
            PackedVectors(tmp_path)
    again = PackedVectors(tmp_path)
    assert ids(again, "u1") == [memory(1)]
    again.close()


async def test_point_of_a_killed_deletion_is_incomplete_until_it_is_deleted(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(POOLED, [pooled(1), pooled(2)])
    index._packed.remove(POOLED.collection, [memory(1)])
    hashes = await index.hashes(POOLED, [memory(1), memory(2)])
    assert {name for name, content_hash in hashes.items() if content_hash == INCOMPLETE} == {memory(1)}
    await index.delete(POOLED, [memory(1)])
    assert await index.count(POOLED, 0) == 1
    await index.close()


async def test_collection_whose_rows_are_lost_is_set_aside(tmp_path: Path) -> None:
    first = EdgeIndex(tmp_path)
    await first.upsert(POOLED, [pooled(1)])
    await first.close()
    shutil.rmtree(tmp_path / PACKED_DIR)
    again = EdgeIndex(tmp_path)
    assert again.set_aside() == [POOLED.collection]
    await again.close()


async def test_point_deleted_during_a_read_is_not_found(tmp_path: Path) -> None:
    first = EdgeIndex(tmp_path)
    await first.upsert(POOLED, [pooled(number) for number in range(100)])
    await first.close()
    index = EdgeIndex(tmp_path)
    # Open, so that the deletion comes between two steps of the read.
    assert await index.count(POOLED, 0) == 100
    await index.hashes(POOLED, [memory(0)])
    reading = asyncio.create_task(index.search(POOLED, QUESTION, MemoryFilter("u1"), 100))
    await asyncio.sleep(0)
    await index.delete(POOLED, [memory(number) for number in range(1, 100)])
    assert [memory.memory_id for memory in await reading] == [memory(0)]
    await index.close()


async def test_failed_deletion_keeps_the_point_until_it_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, [made(1), made(2)])
    before = await answers(index)
    with monkeypatch.context() as failing:
        failing.setattr(index._packed, "_store", Mock(**{"get.return_value": b"u1", "write.side_effect": failed}))
        with pytest.raises(Unavailable):
            await index.delete(SPACE, [memory(1)])
    assert set(await index.hashes(SPACE, [memory(1), memory(2)])) == {memory(1), memory(2)}
    assert await answers(index) == before
    await index.delete(SPACE, [memory(1)])
    assert {memory_id for _, memory_id in await answers(index)} == {memory(2)}
    await index.close()


async def test_row_of_a_killed_write_is_incomplete(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(PLAIN, points(range(2)))
    await index.close()
    with run_child(tmp_path, "edge_shard.CollectionShard.update = die\nasyncio.run(write_once())") as child:
        assert child.wait() == -signal.SIGKILL
    index = EdgeIndex(tmp_path)
    assert len(list(index._packed.of(PLAIN, "u1"))) == 4
    hashes = await index.hashes(PLAIN, [memory(number) for number in range(4)])
    assert {name for name, content_hash in hashes.items() if content_hash == INCOMPLETE} == {memory(2), memory(3)}
    await index.upsert(PLAIN, points(range(1, 4)))
    assert len(await index.hashes(PLAIN, [memory(number) for number in range(4)])) == 4
    assert len(await index.search(PLAIN, ONES, MemoryFilter("u1"), 9)) == 4
    await index.close()


async def test_collection_at_rest_is_searched_without_the_engine(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, [made(number) for number in range(20)])
    before = await answers(index)
    await index.close()
    again = EdgeIndex(tmp_path)
    assert await answers(again) == before
    assert not again._collections.is_open(SPACE)
    await again.upsert(SPACE, [made(30)])
    await again.delete(SPACE, [memory(2)])
    after = await answers(again)
    await again.close()
    assert {memory_id for _, memory_id in after} == {memory_id for _, memory_id in before} - {memory(2)} | {memory(30)}
    last = EdgeIndex(tmp_path)
    assert await answers(last) == after
    assert not last._collections.is_open(SPACE)
    await last.close()


async def test_unpackable_point_of_a_collection_at_rest_is_found_by_the_engine(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    odd = replace(made(2), tokens=np.full((1, 2), 0.123, np.float32))
    await index.upsert(SPACE, [made(1), odd])
    await index.close()
    again = EdgeIndex(tmp_path)
    [found] = await again.maxsim(SPACE, np.eye(1, 2, dtype=np.float32), MemoryFilter("u1"), 10, [memory(2)])
    assert found.score == pytest.approx(0.123, abs=1e-4)
    await again.close()


async def test_deleted_point_is_in_no_file(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, [made(1), made(2)])
    await index.delete(SPACE, [memory(1)])
    await index.close()
    store = PackedVectors(tmp_path / PACKED_DIR)
    assert ids(store, "u1") == [memory(2)]
    store.close()
