"""Token vectors of the embedded index are in the packed store alone, and are found there by every call."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from schemas.models.vectors import MemoryFilter, Point, Scored
from streams.adapters.vectors.embedded.boundary_cache import BoundaryCache
from streams.adapters.vectors.embedded.edge_collections import PACKED_DIR
from streams.adapters.vectors.embedded.edge_index import EdgeIndex, EdgeResources
from streams.adapters.vectors.embedded.edge_shard import vector_query
from tests.builders.spaces import space_of
from tests.fakes.vector_indexes import memory, point

SPACE = space_of(dim=4, token_dim=2)
QUESTION = np.array([[1, 0], [0, 0.5]], np.float32)
OF_USER = MemoryFilter("u1")


def made(number: int, boundary: str = "u1") -> Point:
    """A point with up to three token vectors that can be packed."""
    tokens = np.array([[number % 9, 8 - number % 7], [3, number % 5], [-number % 8, 1]], np.float32)[: number % 4] / 16
    return replace(point(number, boundary=boundary, tokens=tokens), occurred_ms=number)


def unpackable(number: int) -> Point:
    return replace(made(number), tokens=np.full((1, 2), 0.3, np.float32))


def beyond_the_cache() -> EdgeResources:
    return EdgeResources(BoundaryCache(max_points=1))


def tokens_in_engine(index: EdgeIndex, *numbers: int) -> list[int]:
    """Count the token vectors that the engine has of each of these points."""
    shard = index._collections.readable(SPACE)
    assert shard is not None
    found = shard.ask(vector_query(SPACE.fingerprint, [memory(number) for number in numbers]))
    return [len(found[memory(number)].tokens) for number in numbers]


def scores(found: Sequence[Scored]) -> dict[str, float]:
    return {memory.memory_id: memory.score for memory in found}


async def test_engine_has_only_token_vectors_that_cannot_be_packed(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, [made(1), made(2), unpackable(3)])
    assert tokens_in_engine(index, 1, 2, 3) == [0, 0, 1]
    await index.upsert(SPACE, [unpackable(1), made(3)])
    assert tokens_in_engine(index, 1, 2, 3) == [1, 0, 0]
    await index.close()


async def test_vectors_are_returned_as_written(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, [made(2), made(3, "u2"), unpackable(5)])
    found = await index.vectors(SPACE, [memory(number) for number in (2, 3, 4, 5)])
    assert found.keys() == {memory(2), memory(3), memory(5)}
    for each in (made(2), made(3)):
        assert each.tokens is not None
        assert np.array_equal(found[each.memory_id].tokens, each.tokens)
    assert found[memory(5)].tokens == pytest.approx(0.3, abs=1e-3)
    await index.close()


@pytest.mark.parametrize("where", [OF_USER, MemoryFilter("u1", since_ms=10, until_ms=40), MemoryFilter("u2")])
async def test_large_boundaries_have_the_scores_of_cached_ones(tmp_path: Path, where: MemoryFilter) -> None:
    points = [made(number, "u2" if number % 5 == 0 else "u1") for number in range(60)]
    small, large = EdgeIndex(tmp_path / "small"), EdgeIndex(tmp_path / "large", beyond_the_cache())
    for index in (small, large):
        await index.upsert(SPACE, points)
    some = [memory(number) for number in range(5, 80, 2)]
    for asked in (None, some):
        expected = await small.maxsim(SPACE, QUESTION, where, 7, asked)
        assert expected
        assert await large.maxsim(SPACE, QUESTION, where, 7, asked) == list(expected)
    for index in (small, large):
        await index.close()


async def test_unpackable_points_of_a_large_boundary_are_found_among_the_others(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path, beyond_the_cache())
    await index.upsert(SPACE, [made(1), made(2), unpackable(3)])
    found = scores(await index.maxsim(SPACE, QUESTION, OF_USER, 10))
    assert found.keys() == {memory(1), memory(2), memory(3)}
    assert found[memory(3)] == pytest.approx(0.45, abs=1e-3)
    assert len(await index.maxsim(SPACE, QUESTION, OF_USER, 2)) == 2
    await index.close()


async def test_collection_whose_packed_tokens_are_lost_is_set_aside(tmp_path: Path) -> None:
    first = EdgeIndex(tmp_path)
    await first.upsert(SPACE, [made(1), made(2)])
    await first.close()
    shutil.rmtree(tmp_path / PACKED_DIR)
    again, lost = EdgeIndex(tmp_path), Mock()
    again.watch_losses(lost)
    assert again.set_aside() == [SPACE.collection]
    assert await again.count(SPACE, 0) == 0, "so that a worker makes the vectors again"
    await again.upsert(SPACE, [made(1)])
    assert len(await again.maxsim(SPACE, QUESTION, OF_USER, 10)) == 1
    await again.close()
