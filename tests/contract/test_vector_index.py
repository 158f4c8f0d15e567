"""What every vector index does: the fake, the embedded one, and the server's adapter.

The server's adapter runs on its client's local mode, by gRPC on `tests/fakes/qdrant_server`, and on a real server where
MODESTREAM_TEST_QDRANT_URL is set.
"""

import asyncio
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from agents.ports.indexes import VectorIndex
from schemas.models.vectors import MemoryFilter
from schemas.state.modes import VectorSpace
from tests.builders.spaces import space_of
from tests.fakes.vector_indexes import EVERYTHING, QUIET, SPACE, X, ids, memory, point, vector

pytestmark = QUIET

HALF = 2.0**-11
"""The error of a number that is stored with 16 bits, as a share of it."""


async def test_unwritten_space_is_empty_and_has_no_collection(index: VectorIndex) -> None:
    await index.delete(SPACE, [memory(1)])
    await index.upsert(SPACE, [])
    assert await index.search(SPACE, X, EVERYTHING, 10) == []
    assert await index.hashes(SPACE, [memory(1)]) == {}
    assert await index.vectors(SPACE, [memory(1)]) == {}
    assert await index.count(SPACE, 0) == 0
    assert await index.spaces() == {}


async def test_search_gives_cosines_best_first(index: VectorIndex) -> None:
    vectors = [vector(0, 1, 0, 0), vector(-2, 0, 0, 0), vector(3, 3, 0, 0), vector(0.5, 0, 0, 0)]
    await index.upsert(SPACE, [point(number, vector=vector) for number, vector in enumerate(vectors)])
    found = await index.search(SPACE, vector(7, 0, 0, 0), EVERYTHING, 10)
    assert ids(found) == [memory(3), memory(2), memory(0), memory(1)]
    assert [hit.score for hit in found] == pytest.approx([1, math.sqrt(0.5), 0, -1], abs=HALF)


async def test_cosines_agree_with_exact_arithmetic_and_never_leave_their_range(index: VectorIndex) -> None:
    space, drawn = space_of(dim=384), np.random.default_rng(1).standard_normal((64, 384)).astype(np.float32)
    await index.upsert(space, [point(number, vector=vector) for number, vector in enumerate(drawn)])
    for query in drawn[:8]:
        found = {memory.memory_id: memory.score for memory in await index.search(space, query, EVERYTHING, 64)}
        exact = drawn.astype(np.float64) @ query / np.linalg.norm(drawn, axis=1) / np.linalg.norm(query)
        assert [found[memory(number)] for number in range(64)] == pytest.approx(list(exact), abs=1e-4)
        assert max(found.values()) <= 1


async def test_search_gives_no_more_than_the_limit(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(number, vector=vector(1, number, 0, 0)) for number in range(9)])
    assert ids(await index.search(SPACE, X, EVERYTHING, 3)) == [memory(0), memory(1), memory(2)]
    assert await index.search(SPACE, X, EVERYTHING, 0) == []


async def test_search_among_given_memories(index: VectorIndex) -> None:
    points = [point(number, vector=vector(1, number, 0, 0)) for number in range(9)]
    await index.upsert(SPACE, [*points, point(10, boundary="u2")])
    among = [memory(number) for number in (7, 2, 10, 99, 4, 2)]
    assert ids(await index.search(SPACE, X, EVERYTHING, 10, among)) == [memory(2), memory(4), memory(7)]
    assert ids(await index.search(SPACE, X, EVERYTHING, 2, among)) == [memory(2), memory(4)]
    assert ids(await index.search(SPACE, X, EVERYTHING, 10, [])) == []


async def test_equal_cosines_are_ordered_by_id_also_at_the_limit(index: VectorIndex) -> None:
    best = point(999, vector=vector(1, 0.1, 0, 0))
    await index.upsert(SPACE, [best, *(point(number, vector=vector(1, 1, 0, 0)) for number in range(300, 0, -1))])
    found = ids(await index.search(SPACE, X, EVERYTHING, 7))
    assert found == [memory(number) for number in (999, 1, 2, 3, 4, 5, 6)]


async def test_no_read_crosses_a_boundary(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(1), point(2, boundary="u2"), point(3, boundary="u1/x")])
    assert ids(await index.search(SPACE, X, MemoryFilter("u1"), 10)) == [memory(1)]
    assert await index.search(SPACE, X, MemoryFilter("nobody"), 10) == []


FILTERS: Mapping[str, tuple[MemoryFilter, list[int]]] = {
    "a scope field": (MemoryFilter("u1", {"project_id": ("p2",)}), [2]),
    "several values of a scope field": (MemoryFilter("u1", {"project_id": ("p2", "p3", "p4")}), [2, 3]),
    "any value of a scope field": (MemoryFilter("u1", {"user_id": ("u1",), "project_id": None}), [1, 2, 3, 4, 5, 6]),
    "two scope fields": (MemoryFilter("u1", {"user_id": ("u9",), "project_id": ("p1",)}), []),
    "a scope field that no point has": (MemoryFilter("u1", {"team": ("red",)}), []),
    "a mode": (MemoryFilter("u1", modes=("code",)), [4]),
    "several modes": (MemoryFilter("u1", modes=("code", "journal")), [4]),
    "a type": (MemoryFilter("u1", types=("semantic",)), [5]),
    "several types": (MemoryFilter("u1", types=("semantic", "document")), [5, 6]),
    "since, inclusive": (MemoryFilter("u1", since_ms=1_800_000_000_001), [5, 6]),
    "until, exclusive": (MemoryFilter("u1", until_ms=1_800_000_000_001), [1, 2, 3, 4]),
    "a span": (MemoryFilter("u1", since_ms=1_800_000_000_001, until_ms=1_800_000_000_002), [5]),
    "a span from the epoch on": (MemoryFilter("u1", since_ms=0, until_ms=1), []),
    "all at once": (MemoryFilter("u1", {"project_id": ("p1", "p2")}, ("code",), ("episodic",), 0, 2**45), [4]),
    "no value of a scope field": (MemoryFilter("u1", {"project_id": ()}), []),
    "no mode": (MemoryFilter("u1", modes=()), []),
    "no type": (MemoryFilter("u1", types=()), []),
}


@pytest.mark.parametrize("name", FILTERS)
async def test_reads_respect_the_filter(index: VectorIndex, name: str) -> None:
    where, expected = FILTERS[name]
    space, tokens = space_of(token_dim=4), X.reshape(1, 4)
    points = [
        point(1),
        point(2, scope={"user_id": "u1", "project_id": "p2"}),
        point(3, scope={"user_id": "u1", "project_id": "p3"}),
        point(4, mode="code"),
        point(5, type="semantic", occurred_ms=1_800_000_000_001),
        point(6, type="document", occurred_ms=1_800_000_000_002),
        *(point(number, boundary="u2") for number in range(7, 20)),
    ]
    await index.upsert(space, [replace(point, tokens=tokens) for point in points])
    everyone = [point.memory_id for point in points]
    assert ids(await index.search(space, X, where, 50)) == [memory(number) for number in expected]
    for asked in (None, everyone):
        assert ids(await index.maxsim(space, tokens, where, 50, asked)) == [memory(number) for number in expected]


async def test_scope_field_that_appears_later_is_filtered_by(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(1)])
    await index.upsert(SPACE, [point(2, scope={"user_id": "u1", "team": "red"})])
    assert ids(await index.search(SPACE, X, MemoryFilter("u1", {"team": ("red",)}), 10)) == [memory(2)]
    assert ids(await index.search(SPACE, X, MemoryFilter("u1", {"team": None}), 10)) == [memory(1), memory(2)]


async def test_upsert_of_a_known_id_replaces_vector_and_payload(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(1)])
    changes: dict[str, Any] = {
        "boundary": "u2", "partition": 3, "scope": {"user_id": "u2"}, "type": "semantic", "content_hash": "new"
    }  # fmt: skip
    await index.upsert(SPACE, [point(1, vector=vector(0, 1, 0, 0), **changes)])
    assert await index.search(SPACE, X, EVERYTHING, 10) == []
    [found] = await index.search(SPACE, X, MemoryFilter("u2", {"user_id": ("u2",)}, types=("semantic",)), 10)
    assert found.score == pytest.approx(0, abs=1e-6)
    assert await index.hashes(SPACE, [memory(1)]) == {memory(1): "new"}
    assert [await index.count(SPACE, partition) for partition in (0, 3)] == [0, 1]


async def test_later_point_of_an_id_in_a_batch_wins(index: VectorIndex) -> None:
    first, later = point(1, content_hash="first"), point(1, vector=vector(0, 1, 0, 0), content_hash="later")
    await index.upsert(SPACE, [first, point(2), later])
    assert await index.hashes(SPACE, [memory(1)]) == {memory(1): "later"}
    assert ids(await index.search(SPACE, X, EVERYTHING, 10)) == [memory(2), memory(1)]


async def test_delete_removes_points_and_ignores_unknown_ids(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(number) for number in range(4)])
    await index.delete(SPACE, [memory(1), memory(2), memory(99), memory(1)])
    await index.delete(SPACE, [])
    assert ids(await index.search(SPACE, X, EVERYTHING, 10)) == [memory(0), memory(3)]
    assert await index.hashes(SPACE, [memory(1)]) == {}
    assert set(await index.vectors(SPACE, [memory(0), memory(1)])) == {memory(0)}
    assert await index.count(SPACE, 0) == 2


async def test_hashes_and_counts_follow_writes_and_deletes(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(number, partition=number % 3) for number in range(7)])
    asked = [memory(number) for number in (6, 1, 50)]
    assert await index.hashes(SPACE, asked) == {memory(6): "hash-6", memory(1): "hash-1"}
    assert [await index.count(SPACE, partition) for partition in range(4)] == [3, 2, 2, 0]


async def test_unit_vectors_are_returned_with_16_bits_a_number(index: VectorIndex) -> None:
    space, drawn = space_of(dim=384), np.random.default_rng(1).standard_normal((20, 384)).astype(np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    await index.upsert(space, [point(number, vector=vector) for number, vector in enumerate(drawn)])
    vectors = await index.vectors(space, [memory(3), memory(17), memory(99), memory(3)])
    assert set(vectors) == {memory(3), memory(17)}
    for number in (3, 17):
        assert vectors[memory(number)].pooled.dtype == np.float32
        assert np.allclose(vectors[memory(number)].pooled, drawn[number], rtol=HALF, atol=1e-7)


async def test_vectors_are_returned_normalised(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(1, vector=vector(0, 3, 0, -4)), point(2, vector=vector(0, 0, 0, 0))])
    vectors = await index.vectors(SPACE, [memory(1), memory(2)])
    assert vectors[memory(1)].pooled == pytest.approx([0, 0.6, 0, -0.8], rel=HALF)
    assert vectors[memory(2)].pooled == pytest.approx([0, 0, 0, 0])


@pytest.mark.parametrize("token_dim", [0, 4])
async def test_pooled_vectors_are_those_of_whole_points(index: VectorIndex, token_dim: int) -> None:
    space, tokens = space_of(token_dim=token_dim), X.reshape(1, 4) if token_dim else None
    assert await index.pooled(space, [memory(1)]) == {}
    await index.upsert(space, [point(n, vector=vector(n, 3, 0, -4), tokens=tokens) for n in range(300)])
    asked = [memory(n) for n in (*range(299), 999, 5)]
    pooled, whole = await index.pooled(space, asked), await index.vectors(space, asked)
    assert set(pooled) == set(whole) == {memory(n) for n in range(299)}
    assert all(np.array_equal(pooled[memory_id], whole[memory_id].pooled) for memory_id in whole)


async def test_returned_vectors_can_be_written_to_another_space(index: VectorIndex) -> None:
    renamed = space_of(mode="renamed")
    await index.upsert(SPACE, [point(1, vector=vector(1, 2, 3, 4))])
    vectors = await index.vectors(SPACE, [memory(1)])
    pooled = vectors[memory(1)].pooled
    await index.upsert(renamed, [point(1, vector=pooled, mode="renamed")])
    [found] = await index.search(renamed, vector(1, 2, 3, 4), EVERYTHING, 1)
    assert found.score == pytest.approx(1, abs=HALF)
    assert np.allclose((await index.vectors(renamed, [memory(1)]))[memory(1)].pooled, pooled, atol=1e-6)


async def test_more_than_one_batch_is_written_read_and_deleted(index: VectorIndex) -> None:
    points = [point(number, vector=vector(1, number, 0, 0)) for number in range(600)]
    await index.upsert(SPACE, points)
    everyone = [point.memory_id for point in points]
    assert await index.hashes(SPACE, everyone) == {point.memory_id: point.content_hash for point in points}
    assert ids(await index.search(SPACE, X, EVERYTHING, 600)) == everyone
    assert set(await index.vectors(SPACE, everyone)) == set(everyone)
    await index.delete(SPACE, everyone[1:])
    assert await index.count(SPACE, 0) == 1


REFUSED = {
    "another dimension": vector(1, 0, 0),
    "another shape": np.ones((1, 4), dtype=np.float32),
    "NaN": vector(1, math.nan, 0, 0),
    "infinity": vector(1, math.inf, 0, 0),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_bad_vector_is_rejected_before_anything_is_written(index: VectorIndex, name: str) -> None:
    for bad in ([point(1), point(2, vector=REFUSED[name])], [point(1, vector=REFUSED[name]), point(1)]):
        with pytest.raises(ValueError, match=SPACE.collection):
            await index.upsert(SPACE, bad)
    assert await index.spaces() == {}
    await index.upsert(SPACE, [point(3)])
    assert await index.count(SPACE, 0) == 1
    with pytest.raises(ValueError, match=SPACE.collection):
        await index.search(SPACE, REFUSED[name], EVERYTHING, 1)


@pytest.mark.parametrize("memory_id", ["t-17", "", memory(1).replace("-", ""), "A" + memory(1)[1:]])
async def test_id_that_is_not_a_plain_uuid_is_rejected(index: VectorIndex, memory_id: str) -> None:
    with pytest.raises(ValueError, match="UUID"):
        await index.upsert(SPACE, [point(1), replace(point(2), memory_id=memory_id)])
    assert await index.spaces() == {}
    for call in (index.delete(SPACE, [memory_id]), index.hashes(SPACE, [memory_id]), index.vectors(SPACE, [memory_id])):
        with pytest.raises(ValueError, match="UUID"):
            await call


async def test_spaces_are_separate_and_list_their_fingerprints(index: VectorIndex) -> None:
    others = [space_of(mode="code"), space_of(dim=2), space_of(embedder="other")]
    for number, space in enumerate([SPACE, *others]):
        numbers = np.ones(space.fingerprint.dim, dtype=np.float32)
        await index.upsert(space, [point(1, vector=numbers, content_hash=f"in-{number}")])
    await index.delete(others[0], [memory(1)])
    assert await index.hashes(SPACE, [memory(1)]) == {memory(1): "in-0"}
    assert await index.search(others[0], X, EVERYTHING, 10) == []
    assert await index.hashes(others[2], [memory(1)]) == {memory(1): "in-3"}
    assert await index.spaces() == {space.collection: space.fingerprint for space in [SPACE, *others]}


@dataclass(frozen=True)
class Misnamed(VectorSpace):
    """A space whose name is that of another space's collection, as after a change of naming."""

    @property
    def collection(self) -> str:
        return SPACE.collection


async def test_collection_of_another_fingerprint_is_rejected(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(1)])
    wrong = Misnamed("general", space_of(embedder="other").fingerprint)
    for call in (
        index.upsert(wrong, [point(2)]),
        index.delete(wrong, [memory(1)]),
        index.search(wrong, X, EVERYTHING, 1),
        index.hashes(wrong, [memory(1)]),
        index.vectors(wrong, [memory(1)]),
        index.count(wrong, 0),
    ):
        with pytest.raises(ValueError, match=r"holds vectors of .*tiny.*not of .*other"):
            await call
    assert await index.count(SPACE, 0) == 1


async def test_concurrent_writers_create_one_collection(index: VectorIndex) -> None:
    await asyncio.gather(*(index.upsert(SPACE, [point(number)]) for number in range(8)))
    assert await index.count(SPACE, 0) == 8
    assert list(await index.spaces()) == [SPACE.collection]


async def test_two_spaces_of_one_mode_hold_the_same_memories_apart(index: VectorIndex) -> None:
    other = VectorSpace(SPACE.mode, space_of(dim=8).fingerprint)
    await index.upsert(SPACE, [point(1), point(2)])
    await index.upsert(other, [point(number, vector=np.ones(8, np.float32)) for number in (1, 2)])
    await index.delete(other, [memory(1)])
    assert set(await index.hashes(SPACE, [memory(1), memory(2)])) == {memory(1), memory(2)}
    assert set(await index.hashes(other, [memory(1), memory(2)])) == {memory(2)}
    assert await index.count(SPACE, 0) == 2
    assert await index.count(other, 0) == 1
    assert set(await index.spaces()) == {SPACE.collection, other.collection}
