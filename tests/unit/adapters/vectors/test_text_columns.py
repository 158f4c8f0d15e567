"""Passages of the embedded index: the same scores in memory, page by page, and after a restart."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np

from agents.ports.indexes import PASSAGES_READ
from schemas.models.vectors import MemoryFilter, Nearest, PassageVectors, Point
from streams.adapters.embedding.inference.token_vectors import dequantise_tokens, quantise_tokens
from streams.adapters.vectors.embedded.boundary_cache import BoundaryCache, KeptTokens
from streams.adapters.vectors.embedded.edge_collections import PACKED_DIR
from streams.adapters.vectors.embedded.edge_index import EdgeIndex, EdgeResources
from tests.builders.spaces import space_of
from tests.fakes.vector_indexes import memory, point

SPACE = space_of(dim=48, token_dim=16, passages="400-1")
WHERE = MemoryFilter("u1")
COUNT = 90


def drawn(seed: list[int], count: int, dim: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    plain = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    unit: np.ndarray[tuple[int, int], np.dtype[np.float32]] = plain / np.linalg.norm(plain, axis=1, keepdims=True)
    return unit


def made(number: int) -> Point:
    """A text of up to nine passages, some of them without token vectors."""
    count = number % 10
    counts = np.array([(number + part) % 4 for part in range(max(count, 1))])
    tokens = dequantise_tokens(quantise_tokens(drawn([number, 1], 40, 16)))[: counts.sum()]
    passages = PassageVectors(drawn([number, 2], count, 48), counts) if count else None
    return point(number, vector=drawn([number], 1, 48)[0], tokens=tokens, passages=passages)


ALL = [memory(number) for number in range(COUNT)]
QUERY = drawn([1, 2, 3], 1, 48)[0]
QUESTION = drawn([4], 5, 16) / np.float32(5)


def named(found: Nearest) -> dict[tuple[str, int], float]:
    assert found.passages is not None
    owners = [found.table[row] for row in found.passages.rows.tolist()]
    keys = zip(owners, found.passages.parts.tolist(), strict=True)
    return dict(zip(keys, found.passages.scores.tolist(), strict=True))


async def answers(index: EdgeIndex, asked: list[str] | None) -> list[tuple[list[tuple[str, float]], object]]:
    """Return what the reads of passages find, with the passages that they name."""
    found = [
        await index.search_passages(SPACE, QUERY, WHERE, COUNT, asked),
        await index.maxsim(SPACE, QUESTION, WHERE, COUNT, asked),
        await index.maxsim(SPACE, QUESTION, WHERE, COUNT, asked, QUERY),
    ]
    return [([(hit.memory_id, hit.score) for hit in hits], named(hits)) for hits in found]


def beyond_the_cache() -> EdgeResources:
    return EdgeResources(BoundaryCache(max_points=1), tokens=KeptTokens(40_000))


async def test_large_boundaries_have_the_passages_of_cached_ones(tmp_path: Path) -> None:
    small, large = EdgeIndex(tmp_path / "small"), EdgeIndex(tmp_path / "large", beyond_the_cache())
    for index in (small, large):
        await index.upsert(SPACE, [made(number) for number in range(COUNT)])
    for asked in (None, ALL[::3], ALL[1:2]):
        expected = await answers(small, asked)
        for _ in range(2):
            assert await answers(large, asked) == expected
    for index in (small, large):
        await index.close()


async def test_passages_of_some_memories_score_as_among_all(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, [made(number) for number in range(COUNT)])
    everything = await answers(index, None)
    for number in (1, 5, 9, 12):
        for (found, parts), (all_found, all_parts) in zip(
            await answers(index, [memory(number)]), everything, strict=True
        ):
            assert found == [hit for hit in all_found if hit[0] == memory(number)]
            assert isinstance(parts, dict)
            assert isinstance(all_parts, dict)
            assert parts == {key: score for key, score in all_parts.items() if key[0] == memory(number)}
    await index.close()


async def test_late_interaction_reads_the_nearest_passages_with_tokens_alone(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    await index.upsert(SPACE, [made(number) for number in range(COUNT)])
    cosines = named(await index.search_passages(SPACE, QUERY, WHERE, COUNT))
    late = named(await index.maxsim(SPACE, QUESTION, WHERE, COUNT))
    read = named(await index.maxsim(SPACE, QUESTION, WHERE, COUNT, None, QUERY))
    for memory_id in ALL:
        parts = sorted((key for key in late if key[0] == memory_id), key=lambda key: -cosines[key])[:PASSAGES_READ]
        assert {key: late[key] for key in parts} == {key: score for key, score in read.items() if key[0] == memory_id}
    await index.close()


async def test_restart_keeps_passages(tmp_path: Path) -> None:
    first = EdgeIndex(tmp_path)
    await first.upsert(SPACE, [made(number) for number in range(COUNT)])
    before = await answers(first, None)
    await first.close()
    again = EdgeIndex(tmp_path)
    assert await answers(again, None) == before
    # With the collection at rest, and open.
    assert await again.count(SPACE, 0) == COUNT
    await again.upsert(SPACE, [made(number) for number in range(COUNT)])
    assert await answers(again, None) == before
    await again.close()


async def test_text_whose_tokens_cannot_be_packed_is_scored_as_a_whole(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path)
    tokens = np.full((2, 16), 0.3, np.float32)
    await index.upsert(
        SPACE, [made(5), replace(made(15), tokens=tokens, passages=PassageVectors(drawn([7], 2, 48), np.array([1, 1])))]
    )
    found = await index.search_passages(SPACE, QUERY, WHERE, COUNT)
    assert found.memory_ids == [memory(5)]
    late = await index.maxsim(SPACE, QUESTION, WHERE, COUNT)
    assert set(late.memory_ids) == {memory(5), memory(15)}
    assert {owner for owner, _ in named(late)} == {memory(5)}
    await index.close()


async def test_collection_whose_passages_are_lost_is_set_aside(tmp_path: Path) -> None:
    space = space_of(dim=48, passages="400-1")
    first = EdgeIndex(tmp_path)
    await first.upsert(
        space, [replace(made(10), tokens=None, passages=PassageVectors(drawn([7], 2, 48), np.zeros(2, np.int64)))]
    )
    await first.close()
    shutil.rmtree(tmp_path / PACKED_DIR)
    again = EdgeIndex(tmp_path)
    assert again.set_aside() == [space.collection]
    await again.close()
