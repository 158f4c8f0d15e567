"""Pooled vectors of boundaries with many memories: exact, and read beside questions and writes."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schemas.failures import Unavailable
from schemas.models.vectors import Matrix, MemoryFilter, Point, Scored
from streams.adapters.vectors.embedded.boundary_cache import BoundaryCache
from streams.adapters.vectors.embedded.edge_index import EdgeIndex
from streams.adapters.vectors.embedded.edge_resources import EdgeResources
from streams.adapters.vectors.embedded.edge_shard import CollectionShard
from streams.adapters.vectors.embedded.packed_rows import half_unit_vector
from streams.adapters.vectors.embedded.quantised_vectors import PooledRow, QuantisedVectors
from streams.adapters.vectors.shared.vector_contract import POINT_BATCH_SIZE
from tests.builders.spaces import space_of
from tests.fakes.vector_indexes import memory, point

SPACE = space_of(dim=16)
WHERE = MemoryFilter("u1")
QUESTION = np.eye(1, 16, dtype=np.float32)[0]


def units(seed: int, count: int, dim: int) -> Matrix:
    plain = np.random.default_rng(seed).standard_normal((count, dim))
    rows: Matrix = (plain / np.linalg.norm(plain, axis=1, keepdims=True)).astype(np.float32)
    return rows


def points(numbers: range, seed: int = 1) -> list[Point]:
    drawn = units(seed, len(numbers), 16)
    return [point(number, vector=one, scope={"user_id": "u1"}) for number, one in zip(numbers, drawn, strict=True)]


def held(vectors: Matrix) -> QuantisedVectors:
    made = QuantisedVectors(space_of(dim=vectors.shape[1]).fingerprint)
    made.put([PooledRow.of(point(number, vector=one)) for number, one in enumerate(vectors)])
    return made


def ids(found: Sequence[Scored]) -> list[str]:
    return [one.memory_id for one in found]


def index_of(root: Path, **limits: int) -> EdgeIndex:
    return EdgeIndex(root, EdgeResources(BoundaryCache(max_points=0, **limits)))


def test_nearest_are_exact() -> None:
    vectors = np.concatenate([units(1, 4000, 384), units(2, 1000, 384) + 0.3 * units(3, 1, 384)])
    vectors[7] = 0
    quantised = held(vectors.astype(np.float32))
    wide = np.array([half_unit_vector(one) for one in vectors.astype(np.float32)]).astype(np.float64)
    for question in units(4, 20, 384):
        exact = wide @ question.astype(np.float64) / np.linalg.norm(question.astype(np.float64))
        found = quantised.nearest(question, WHERE, 300)
        assert len(set(ids(found))) == 300
        best = np.sort(exact)[::-1][:300].tolist()
        of_memory = dict(zip(map(memory, range(len(exact))), exact.tolist(), strict=True))
        assert [of_memory[one] for one in ids(found)] == pytest.approx(best, abs=3e-7)
        assert [one.score for one in found] == pytest.approx(best, abs=3e-7)


def test_question_computes_few_cosines_from_all_bits() -> None:
    quantised = held(units(1, 5000, 384))
    rows = quantised._candidates(units(2, 1, 384)[0], np.arange(5000), 100)
    assert 100 <= len(rows) < 400


def test_cosine_does_not_depend_on_other_rows() -> None:
    vectors, question = units(1, 600, 384), units(2, 1, 384)[0]
    scores = {one.memory_id: one.score for one in held(vectors).nearest(question, WHERE, 600)}
    for number in (0, 17, 599):
        alone = QuantisedVectors(space_of(dim=384).fingerprint)
        alone.put([PooledRow.of(point(number, vector=vectors[number]))])
        assert alone.nearest(question, WHERE, 1)[0].score == scores[memory(number)]


def test_ties_at_the_limit_are_ordered_by_id() -> None:
    vectors = np.repeat(units(1, 3, 16), 400, axis=0)
    question = vectors[0]
    assert ids(held(vectors).nearest(question, WHERE, 5)) == [memory(number) for number in range(5)]


async def test_engine_answers_until_the_vectors_are_read(tmp_path: Path) -> None:
    index = index_of(tmp_path)
    await index.upsert(SPACE, points(range(3 * POINT_BATCH_SIZE)))
    first = await index.search(SPACE, QUESTION, WHERE, 20)
    await index.until_read()
    engine_calls = index._query
    index._query = lambda *_: pytest.fail("the engine is asked")  # type: ignore[method-assign]
    again = await index.search(SPACE, QUESTION, WHERE, 20)
    index._query = engine_calls  # type: ignore[method-assign]
    assert ids(again) == ids(first)
    assert [one.score for one in again] == pytest.approx([one.score for one in first], abs=1e-6)
    await index.close()


async def test_writes_during_a_read_are_found(tmp_path: Path) -> None:
    for pauses in (1, 2, 5, 8):
        index = index_of(tmp_path / str(pauses))
        await index.upsert(SPACE, points(range(4 * POINT_BATCH_SIZE)))
        await index.search(SPACE, QUESTION, WHERE, 1)
        for _ in range(pauses):
            await asyncio.sleep(0)
        await index.upsert(SPACE, [point(3, vector=QUESTION, scope={"user_id": "u1"}), point(5000, vector=QUESTION)])
        await index.upsert(SPACE, [point(4, vector=QUESTION, boundary="u2")])
        await index.delete(SPACE, [memory(900), memory(5)])
        await index.until_read()
        found = ids(await index.search(SPACE, QUESTION, WHERE, 5000))
        assert found[:2] == [memory(3), memory(5000)]
        assert set(found) == {memory(number) for number in {*range(1024), 5000} - {4, 5, 900}}
        await index.close()


async def test_points_without_a_packed_row_are_read_from_the_engine(tmp_path: Path) -> None:
    index = index_of(tmp_path)
    await index.upsert(SPACE, points(range(40)))
    index._packed.remove(SPACE.collection, [memory(number) for number in range(0, 40, 3)])
    await index.search(SPACE, QUESTION, WHERE, 1)
    await index.until_read()
    assert len(await index.search(SPACE, QUESTION, WHERE, 100)) == 40
    await index.close()


async def test_index_that_is_closed_during_a_read_is_found_whole_by_its_next_owner(tmp_path: Path) -> None:
    index = index_of(tmp_path)
    await index.upsert(SPACE, points(range(4 * POINT_BATCH_SIZE)))
    await index.search(SPACE, QUESTION, WHERE, 1)
    await asyncio.sleep(0)
    await index.close()
    again = index_of(tmp_path)
    await again.search(SPACE, QUESTION, WHERE, 1)
    await again.until_read()
    assert len(await again.search(SPACE, QUESTION, WHERE, 5000)) == 4 * POINT_BATCH_SIZE
    await again.close()


async def test_failed_write_ends_the_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = index_of(tmp_path)
    await index.upsert(SPACE, points(range(4 * POINT_BATCH_SIZE)))
    await index.search(SPACE, QUESTION, WHERE, 1)
    await asyncio.sleep(0)
    with monkeypatch.context() as patched:
        update = CollectionShard.update

        def applied_and_failed(self: CollectionShard, operation: object) -> None:
            update(self, operation)  # type: ignore[arg-type]
            raise Unavailable("the disk is full")

        patched.setattr(CollectionShard, "update", applied_and_failed)
        with pytest.raises(Unavailable):
            await index.delete(SPACE, [memory(1)])
    await index.search(SPACE, QUESTION, WHERE, 1)
    await index.until_read()
    assert memory(1) not in ids(await index.search(SPACE, QUESTION, WHERE, 5000))
    await index.close()


async def test_boundary_beyond_the_limit_is_left_to_the_engine(tmp_path: Path) -> None:
    index = index_of(tmp_path, max_quantised=10)
    await index.upsert(SPACE, points(range(10)))
    for count in (10, 11):
        await index.search(SPACE, QUESTION, WHERE, 1)
        await index.until_read()
        assert len(await index.search(SPACE, QUESTION, WHERE, 100)) == count
        await index.upsert(SPACE, points(range(10, 11)))
    cached = index._cached._cache
    [key] = cached._boundaries
    assert cached.get(key) is None
    await index.close()


async def test_edits_and_removals_are_followed(tmp_path: Path) -> None:
    index = index_of(tmp_path)
    await index.upsert(SPACE, points(range(50)))
    await index.search(SPACE, QUESTION, WHERE, 1)
    await index.until_read()
    await index.upsert(SPACE, [replace(one, type="semantic", vector=-one.vector) for one in points(range(10, 20))])
    await index.delete(SPACE, [memory(12)])
    found = await index.search(SPACE, QUESTION, MemoryFilter("u1", types=("semantic",)), 100)
    assert set(ids(found)) == {memory(number) for number in {*range(10, 20)} - {12}}
    exact = {memory(number): float(-one.vector[0]) for number, one in enumerate(points(range(10, 20)), 10)}
    assert {one.memory_id: one.score for one in found} == pytest.approx(
        {one: score for one, score in exact.items() if one != memory(12)}, rel=2**-11
    )
    await index.close()
