"""Packed vectors of the embedded index: sorted by boundary, and derived from the engine."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from schemas.failures import Unavailable
from schemas.models.vectors import MemoryFilter, Point
from streams.adapters.vectors.embedded.edge_index import EdgeIndex
from streams.adapters.vectors.embedded.edge_shard import PACKED_DIR
from streams.adapters.vectors.embedded.packed_vectors import PackedVectors, pack_point
from tests.fakes.vector_indexes import memory, point, space_of

SPACE = space_of(dim=4, token_dim=2)
QUESTION = np.array([1, 0, 0, 0], np.float32)


def made(number: int, boundary: str = "u1") -> Point:
    vector = np.array([1, number, 0, 0], np.float32)
    return point(number, boundary=boundary, vector=vector, tokens=np.full((number % 3, 2), 0.5, np.float32))


def written(store: PackedVectors, *points: Point) -> None:
    store.put([(one, pack_point(SPACE.fingerprint, one)) for one in points])


def ids(store: PackedVectors, boundary: str) -> list[str]:
    return [row.memory_id for row in store.of(boundary)]


async def answers(index: EdgeIndex) -> dict[tuple[str, str], float]:
    """Cosines and MaxSim scores by memory."""
    near = await index.search(SPACE, QUESTION, MemoryFilter("u1"), 100)
    late = await index.maxsim(SPACE, np.ones((1, 2), np.float32), MemoryFilter("u1"), 100)
    found = [("near", one) for one in near] + [("late", one) for one in late]
    return {(way, one.memory_id): one.score for way, one in found}


def failed(*_: object) -> None:
    """A disk on which every write fails."""
    raise OSError("no space left")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[PackedVectors]:
    opened = PackedVectors(tmp_path / "store", SPACE.fingerprint)
    yield opened
    opened.close()


def test_row_equals_the_written_point(store: PackedVectors) -> None:
    written(store, made(2))
    [row] = store.of("u1")
    assert (row.memory_id, row.kind.mode, row.kind.type, row.occurred_ms) == (
        memory(2),
        made(2).mode,
        made(2).type,
        made(2).occurred_ms,
    )
    assert dict(row.kind.scope) == made(2).scope
    assert row.vectors.pooled == pytest.approx(np.array([1, 2, 0, 0]) / 5**0.5)
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
    assert (ids(store, "u1"), ids(store, "u2")) == ([memory(2)], [memory(1)])


def test_removed_or_unpackable_point_has_no_row(store: PackedVectors) -> None:
    written(store, made(1), made(2), made(3))
    store.remove([memory(1), memory(9)])
    store.put([(made(2), None)])
    assert ids(store, "u1") == [memory(3)]


def test_broken_store_is_replaced(tmp_path: Path) -> None:
    store = PackedVectors(tmp_path, SPACE.fingerprint)
    written(store, made(1))
    store.close()
    (tmp_path / "CURRENT").write_text("nonsense\n")
    again = PackedVectors(tmp_path, SPACE.fingerprint)
    assert ids(again, "u1") == []
    written(again, made(2))
    assert ids(again, "u1") == [memory(2)]
    again.close()


async def test_missing_row_is_read_from_the_engine_and_packed(tmp_path: Path) -> None:
    first = EdgeIndex(tmp_path)
    await first.upsert(SPACE, [made(number) for number in range(100)])
    before = await answers(first)
    await first.close()
    lost = tmp_path / SPACE.collection / PACKED_DIR
    shutil.rmtree(lost)
    again = EdgeIndex(tmp_path)
    after = await answers(again)
    await again.close()
    # The engine normalises in 32 bits, which may change the last digit.
    assert after == pytest.approx(before, abs=1e-6)
    store = PackedVectors(lost, SPACE.fingerprint)
    assert len(ids(store, "u1")) == 100
    store.close()


async def test_point_deleted_during_a_read_is_not_found(tmp_path: Path) -> None:
    first = EdgeIndex(tmp_path)
    await first.upsert(SPACE, [made(number) for number in range(100)])
    await first.close()
    shutil.rmtree(tmp_path / SPACE.collection / PACKED_DIR)
    index = EdgeIndex(tmp_path)
    reading = asyncio.create_task(index.search(SPACE, QUESTION, MemoryFilter("u1"), 100))
    await asyncio.sleep(0)
    await index.delete(SPACE, [memory(number) for number in range(1, 100)])
    assert [one.memory_id for one in await reading] == [memory(0)]
    await index.close()


async def test_failed_deletion_keeps_the_point_until_it_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, [made(1), made(2)])
    before = await answers(index)
    with monkeypatch.context() as failing:
        failing.setattr(PackedVectors, "remove", failed)
        with pytest.raises(Unavailable):
            await index.delete(SPACE, [memory(1)])
    assert set(await index.hashes(SPACE, [memory(1), memory(2)])) == {memory(1), memory(2)}
    assert await answers(index) == before
    await index.delete(SPACE, [memory(1)])
    assert {one for _, one in await answers(index)} == {memory(2)}
    await index.close()


async def test_a_row_without_a_point_is_not_found(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, [made(1), made(2)])
    await index.close()
    store = PackedVectors(tmp_path / SPACE.collection / PACKED_DIR, SPACE.fingerprint)
    written(store, made(3))
    store.close()
    again = EdgeIndex(tmp_path)
    found = await again.search(SPACE, QUESTION, MemoryFilter("u1"), 10)
    assert [one.memory_id for one in found] == [memory(1), memory(2)]
    await again.close()


async def test_deleted_point_is_in_no_file(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, [made(1), made(2)])
    await index.delete(SPACE, [memory(1)])
    await index.close()
    store = PackedVectors(tmp_path / SPACE.collection / PACKED_DIR, SPACE.fingerprint)
    assert ids(store, "u1") == [memory(2)]
    store.close()
