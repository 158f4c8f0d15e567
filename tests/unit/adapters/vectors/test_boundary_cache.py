"""The cache of boundaries' vectors: equal to the engine, and bounded."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from qdrant_edge import UpdateOperation

from schemas.failures import Unavailable
from schemas.models.vectors import Matrix, MemoryFilter, Point, Scored
from schemas.state.modes import VectorSpace
from streams.adapters.embedding.inference.token_vectors import dequantise_tokens, quantise_tokens
from streams.adapters.vectors.embedded.boundary_cache import BoundaryCache
from streams.adapters.vectors.embedded.boundary_vectors import BoundaryVectors
from streams.adapters.vectors.embedded.edge_index import EdgeIndex, EdgeResources
from streams.adapters.vectors.embedded.edge_shard import CollectionShard
from streams.adapters.vectors.embedded.packed_vectors import (
    POINT_PAGE_SIZE,
    FilterFields,
    PointRow,
    Unpacked,
    pack_point,
    unpack_vectors,
)
from tests.builders.spaces import space_of
from tests.fakes.vector_indexes import memory, point

SPACE = space_of(dim=16, token_dim=32)
EVERYTHING = MemoryFilter("u1")
SIXTEEN_BITS = 3e-4
"""The engine compares with a question of 16-bit floats, too: cosines of 16 numbers differ by this at most."""


def unit_rows(seed: int, count: int, dim: int) -> Matrix:
    plain = np.random.default_rng(seed).standard_normal((count, dim))
    rows: Matrix = (plain / np.linalg.norm(plain, axis=1, keepdims=True)).astype(np.float32)
    return rows


def fifths(seed: int) -> Matrix:
    """A query of five tokens of equal weight."""
    return (unit_rows(seed, 5, 32) / 5).astype(np.float32)


def made(number: int, boundary: str = "u1", version: int = 0) -> Point:
    seed = 10_000 * version + number
    return point(
        number,
        boundary=boundary,
        vector=unit_rows(seed, 1, 16)[0],
        tokens=dequantise_tokens(quantise_tokens(unit_rows(seed, number % 7, 32))),
        scope={"user_id": boundary, "project_id": f"p{number % 3}"},
        type="semantic" if number % 5 == 0 else "episodic",
        occurred_ms=1000 * number,
    )


async def answers(index: EdgeIndex, boundary: str = "u1", space: VectorSpace = SPACE) -> list[Sequence[Scored]]:
    question, rows = unit_rows(7, 1, 16)[0], fifths(8)
    some = [memory(number) for number in range(0, 90, 4)]
    wheres = [
        MemoryFilter(boundary),
        MemoryFilter(boundary, {"project_id": ("p1", "p2")}, types=("episodic",)),
        MemoryFilter(boundary, modes=("general",), since_ms=10_000, until_ms=60_000),
        MemoryFilter(boundary, modes=("other",)),
    ]
    found = [await index.search(space, question, where, limit) for where in wheres for limit in (5, 500)]
    found += [await index.maxsim(space, rows, where, limit) for where in wheres for limit in (5, 500)]
    return [*found, *[await index.maxsim(space, rows, where, 500, some) for where in wheres]]


def assert_alike(held: Sequence[Sequence[Scored]], engine: Sequence[Sequence[Scored]]) -> None:
    assert any(engine)
    for ours, theirs in zip(held, engine, strict=True):
        assert [memory.memory_id for memory in ours] == [memory.memory_id for memory in theirs]
        assert [hit.score for hit in ours] == pytest.approx([hit.score for hit in theirs], abs=SIXTEEN_BITS)


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[EdgeIndex]:
    opened = EdgeIndex(tmp_path / "held")
    yield opened
    await opened.close()


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[EdgeIndex]:
    opened = EdgeIndex(tmp_path / "engine", EdgeResources(BoundaryCache(max_points=0)))
    yield opened
    await opened.close()


async def test_cache_follows_every_write(index: EdgeIndex, engine: EdgeIndex) -> None:
    for opened in (index, engine):
        await opened.upsert(SPACE, [made(number) for number in range(60)])
    assert_alike(await answers(index), await answers(engine))
    for opened in (index, engine):
        await opened.upsert(SPACE, [made(number, version=1) for number in range(50, 80)])
        await opened.delete(SPACE, [memory(number) for number in range(20, 30)])
        await opened.upsert(SPACE, [replace(made(40), type="document", scope={"user_id": "u1", "project_id": "p2"})])
    assert_alike(await answers(index), await answers(engine))


async def test_maxsim_scores_are_near_exact_arithmetic(index: EdgeIndex) -> None:
    await index.upsert(SPACE, [made(number) for number in range(60)])
    rows = fifths(8)
    found = await index.maxsim(SPACE, rows, EVERYTHING, 100)
    assert len(found) == sum(number % 7 > 0 for number in range(60))
    for hit in found:
        tokens = made(int(hit.memory_id[-12:])).tokens
        assert tokens is not None
        exact = (rows.astype(np.float64) @ tokens.astype(np.float64).T).max(axis=1).sum()
        assert hit.score == pytest.approx(exact, abs=5e-3)


async def test_point_that_changes_its_boundary_leaves_the_old_one(index: EdgeIndex) -> None:
    await index.upsert(SPACE, [made(1), made(2)])
    await answers(index)
    await index.upsert(SPACE, [made(1, "u2")])
    assert [answer.memory_id for answer in (await answers(index))[0]] == [memory(2)]
    assert [answer.memory_id for answer in (await answers(index, "u2"))[0]] == [memory(1)]


async def test_scores_do_not_depend_on_the_order_of_rows(index: EdgeIndex, tmp_path: Path) -> None:
    points = [made(number) for number in range(90)]
    await index.upsert(SPACE, points)
    first = await answers(index)
    for written in reversed(points):
        await index.upsert(SPACE, [written])
    assert await answers(index) == first
    again = EdgeIndex(tmp_path / "again")
    await again.upsert(SPACE, points[::-2])
    await answers(again)
    await again.upsert(SPACE, points)
    assert await answers(again) == first
    await again.close()


async def test_point_written_during_a_read_is_found(index: EdgeIndex) -> None:
    many = [made(number) for number in range(POINT_PAGE_SIZE + 500)]
    await index.upsert(SPACE, many)
    question = unit_rows(7, 1, 16)[0]
    reading = asyncio.create_task(index.search(SPACE, question, EVERYTHING, 10))
    await asyncio.sleep(0)
    assert not reading.done()
    nearest = replace(made(3), vector=question)
    await index.upsert(SPACE, [nearest])
    await reading
    assert (await index.search(SPACE, question, EVERYTHING, 1))[0].memory_id == memory(3)


async def test_unquantised_tokens_leave_their_boundary_to_the_engine(index: EdgeIndex) -> None:
    odd = replace(made(5), tokens=np.full((1, 32), 0.123, np.float32))
    assert pack_point(SPACE.fingerprint, odd) is None
    await index.upsert(SPACE, [made(1), made(2)])
    await answers(index)
    await index.upsert(SPACE, [odd])
    [found] = await index.maxsim(SPACE, np.eye(1, 32, dtype=np.float32), EVERYTHING, 10, [memory(5)])
    assert found.score == pytest.approx(0.123, abs=1e-4)


async def test_failed_write_drops_the_cached_collection(index: EdgeIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    await index.upsert(SPACE, [made(1), made(2)])
    await answers(index)

    def applied_and_failed(self: CollectionShard, operation: UpdateOperation) -> None:
        self.ask(lambda shard: shard.update(operation))
        raise Unavailable("the disk is full")

    monkeypatch.setattr(CollectionShard, "update", applied_and_failed)
    with pytest.raises(Unavailable):
        await index.delete(SPACE, [memory(1)])
    assert [answer.memory_id for answer in (await answers(index))[0]] == [memory(2)]


def filled(count: int) -> BoundaryVectors:
    vectors = BoundaryVectors(SPACE.fingerprint)
    vectors.put(
        [
            PointRow(memory(number), FilterFields("general", "episodic", ()), 0, unpacked_of(made(number)))
            for number in range(count)
        ]
    )
    return vectors


def unpacked_of(each: Point) -> Unpacked:
    data = pack_point(SPACE.fingerprint, each)
    assert data is not None
    return unpack_vectors(SPACE.fingerprint, data)


def test_least_recently_queried_boundary_is_evicted() -> None:
    size = filled(50).size
    cache = BoundaryCache(max_bytes=3 * size)
    for name in ("a", "b", "c"):
        cache.put(("x", name), filled(50))
    cache.get(("x", "a"))
    cache.put(("x", "d"), filled(50))
    assert [name for name in "abcd" if cache.has(("x", name))] == ["a", "c", "d"]
    cache.put(("x", "large"), filled(900))
    assert [name for name in ("a", "c", "d", "large") if cache.has(("x", name))] == ["large"]


def test_equal_scores_are_ordered_by_id_whatever_the_order_of_arrival() -> None:
    vectors, kind = BoundaryVectors(SPACE.fingerprint), FilterFields("general", "episodic", ())
    same, other = unpacked_of(made(1)), unpacked_of(made(2))
    vectors.put([PointRow(memory(number), kind, 0, other if number == 5 else same) for number in (9, 5, 8, 3)])
    tied = [memory(3), memory(8), memory(9)]
    towards, away = same.pooled, -same.pooled + 2 * other.pooled
    assert [memory.memory_id for memory in vectors.nearest(towards, EVERYTHING, 10)] == [*tied, memory(5)]
    assert [memory.memory_id for memory in vectors.nearest(towards, EVERYTHING, 2)] == tied[:2]
    assert [memory.memory_id for memory in vectors.nearest(away, EVERYTHING, 10)] == [memory(5), *tied]


def test_boundary_of_one_memory_is_small() -> None:
    vectors = BoundaryVectors(space_of(dim=384, token_dim=96).fingerprint)
    tokens = np.zeros((14, 96), np.int8)
    unpacked = Unpacked(np.ones(384, np.float32), tokens)
    vectors.put([PointRow(memory(1), FilterFields.of("general", "episodic", {"user_id": "u1"}), 0, unpacked)])
    assert vectors.size < 5 * (unpacked.pooled.nbytes + tokens.nbytes)


def test_growing_boundary_evicts_others() -> None:
    cache = BoundaryCache(max_bytes=3 * filled(50).size)
    cache.put(("x", "other"), filled(50))
    cache.put(("x", "u1"), filled(50))
    for number in range(50, 400):
        cache.written("x", [(made(number), unpacked_of(made(number)))])
    assert cache.has(("x", "u1"))
    assert not cache.has(("x", "other"))


def test_boundary_that_grows_too_large_is_read_again() -> None:
    cache = BoundaryCache(max_points=10)
    cache.put(("x", "u1"), filled(10))
    cache.written("x", [(made(99), unpacked_of(made(99)))])
    assert not cache.has(("x", "u1"))


def test_boundary_with_many_dead_rows_is_dropped() -> None:
    cache = BoundaryCache()
    cache.put(("x", "u1"), filled(10))
    for _ in range(20):
        cache.written("x", [(made(number), unpacked_of(made(number))) for number in range(10)])
    kept = cache.has(("x", "u1"))
    assert not kept or len(cache.get(("x", "u1"))._table.ids) < 100  # type: ignore[union-attr]


async def test_boundary_beyond_the_limit_is_left_to_the_engine(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path, EdgeResources(BoundaryCache(max_points=10)))
    await index.upsert(SPACE, [made(number) for number in range(10)])
    assert await index._cached.of(SPACE, EVERYTHING) is not None
    await index.upsert(SPACE, [made(10)])
    assert await index._cached.of(SPACE, EVERYTHING) is None
    assert len(await index.search(SPACE, unit_rows(7, 1, 16)[0], EVERYTHING, 100)) == 11
    await index.close()
