"""The cache of packed token vectors: what the packed store has, read once, and bounded."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schemas.models.vectors import MemoryFilter, Point
from schemas.state.modes import VectorSpace
from streams.adapters.embedding.inference.token_vectors import dequantise_tokens, quantise_tokens
from streams.adapters.vectors.embedded.boundary_cache import BoundaryCache, KeptTokens, TokenCache
from streams.adapters.vectors.embedded.edge_index import EdgeIndex, EdgeResources
from streams.adapters.vectors.embedded.maxsim import QuestionSteps
from streams.adapters.vectors.embedded.packed_vectors import PackedVectors, pack_point
from streams.adapters.vectors.embedded.text_columns import TextQuestion
from tests.builders.spaces import space_of
from tests.fakes.vector_indexes import memory, point

SPACE = space_of(dim=4, token_dim=32)
WHERE = MemoryFilter("u1")
QUESTION = TextQuestion(QuestionSteps.of(np.eye(3, 32, dtype=np.float32)))


class CountingStore(PackedVectors):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.asked: list[str] = []

    def rows(self, space: VectorSpace, boundary: str, memory_ids: Sequence[str]) -> list[bytes | None]:
        self.asked += memory_ids
        return super().rows(space, boundary, memory_ids)


def made(number: int, version: int = 0) -> Point:
    """A point with three token vectors."""
    plain = np.random.default_rng([number, version]).standard_normal((3, 32)).astype(np.float32)
    tokens = dequantise_tokens(quantise_tokens(plain / np.linalg.norm(plain, axis=1, keepdims=True)))
    return replace(point(number, scope={"user_id": "u1"}, tokens=tokens), occurred_ms=100 * number)


def put(store: PackedVectors, *points: Point) -> None:
    store.put(SPACE.collection, [(point, pack_point(SPACE.fingerprint, point)) for point in points])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CountingStore]:
    opened = CountingStore(tmp_path)
    put(opened, *(made(number) for number in range(6)))
    yield opened
    opened.close()


def ids(*numbers: int) -> list[str]:
    return [memory(number) for number in numbers]


def read(cache: TokenCache, *numbers: int, where: MemoryFilter = WHERE) -> dict[str, float]:
    """Score these memories, all of them packed."""
    asked = ids(*numbers)
    scored, unpacked = cache.scores(SPACE, where, QUESTION, asked)
    assert unpacked == []
    return {asked[place]: score for place, score in zip(scored.rows.tolist(), scored.scores.tolist(), strict=True)}


def size_of(store: PackedVectors, count: int) -> int:
    """The bytes of so many rows."""
    kept = KeptTokens()
    TokenCache(store, kept).scores(SPACE, WHERE, QUESTION, ids(*range(count)))
    return kept.size


def test_rows_are_read_once(store: CountingStore) -> None:
    cache = TokenCache(store)
    first, again = read(cache, 3, 1, 2), read(cache, 2, 3, 4)
    assert store.asked == ids(1, 2, 3, 4)
    assert sorted(first) == ids(1, 2, 3)
    assert sorted(again) == ids(2, 3, 4)
    assert {memory_id: first[memory_id] for memory_id in ids(2, 3)} == {each: again[each] for each in ids(2, 3)}
    assert again == read(TokenCache(store), 2, 3, 4)


def test_cached_rows_are_filtered(store: CountingStore) -> None:
    cache = TokenCache(store)
    read(cache, 1, 2, 3)
    assert sorted(read(cache, 1, 2, 3, where=MemoryFilter("u1", since_ms=200))) == ids(2, 3)
    assert read(cache, 1, 2, 3, where=MemoryFilter("u1", modes=())) == {}


def test_other_boundary_does_not_see_cached_rows(store: CountingStore) -> None:
    cache = TokenCache(store)
    read(cache, 1)
    assert read(cache, 1, where=MemoryFilter("u2")) == {}


def test_forgotten_rows_are_read_again(store: CountingStore) -> None:
    cache = TokenCache(store)
    before = read(cache, 1, 2)
    put(store, made(1, version=1))
    store.remove(SPACE.collection, ids(2))
    cache.forget(SPACE.collection, ids(1, 2, 99))
    after = read(cache, 1, 2)
    assert list(after) == ids(1)
    assert after[memory(1)] != before[memory(1)]


def test_rows_that_are_written_again_and_again_take_no_more_room(store: CountingStore) -> None:
    kept = KeptTokens()
    cache = TokenCache(store, kept)
    for _ in range(100):
        read(cache, 0, 1, 2)
        cache.forget(SPACE.collection, ids(0, 1, 2))
    assert kept.size < size_of(store, 6) * 20


def test_dropped_collection_is_read_again(store: CountingStore) -> None:
    kept = KeptTokens()
    cache = TokenCache(store, kept)
    read(cache, 1)
    cache.drop(SPACE.collection)
    assert kept.size == 0
    read(cache, 1)
    assert store.asked == ids(1, 1)


def test_bytes_are_bounded_and_the_last_rows_kept(store: CountingStore) -> None:
    limit = size_of(store, 4)
    kept = KeptTokens(limit)
    cache = TokenCache(store, kept)
    store.asked.clear()
    for number in range(6):
        before = list(store.asked)
        alone = read(TokenCache(store), number)
        store.asked[:] = before
        assert [read(cache, number) for _ in range(2)] == [alone, alone]
        assert kept.size <= limit
        # Also right after others went.
        assert store.asked == [*before, memory(number)]
        store.asked[:] = before


def test_questions_wider_than_the_limit_are_answered(store: CountingStore) -> None:
    kept = KeptTokens(10)
    assert sorted(read(TokenCache(store, kept), 0, 1, 2, 3)) == ids(0, 1, 2, 3)
    assert kept.size <= 10


def test_boundary_asked_longest_ago_is_dropped_first(store: CountingStore) -> None:
    others = [replace(made(number), boundary="u2", scope={"user_id": "u2"}) for number in (7, 8)]
    put(store, *others)
    kept = KeptTokens(size_of(store, 2))
    cache, theirs = TokenCache(store, kept), MemoryFilter("u2")
    store.asked.clear()
    read(cache, 1)
    read(cache, 7, 8, where=theirs)
    assert kept.size <= size_of(store, 2)
    store.asked.clear()
    read(cache, 7, 8, where=theirs)
    assert store.asked == []
    read(cache, 1)
    assert store.asked == ids(1)


def test_indexes_of_a_process_share_the_limit_and_no_rows(store: CountingStore) -> None:
    kept, limit = KeptTokens(size_of(store, 2)), size_of(store, 2)
    store.asked.clear()
    first, second = TokenCache(store, kept, "0"), TokenCache(store, kept, "1")
    read(first, 1, 2)
    read(second, 1, 2)
    assert kept.size <= limit
    assert store.asked == ids(1, 2, 1, 2)
    second.close()
    assert kept.size == 0


def test_id_that_is_no_uuid_is_refused(store: CountingStore) -> None:
    with pytest.raises(ValueError, match="no UUID"):
        TokenCache(store).scores(SPACE, WHERE, QUESTION, ["one"])


async def test_written_points_are_scored_by_their_new_tokens(tmp_path: Path) -> None:
    index = EdgeIndex(tmp_path, EdgeResources(BoundaryCache(max_points=0)))
    await index.upsert(SPACE, [made(number) for number in range(3)])
    question = np.array(made(1, version=1).tokens, np.float32) / np.float32(3)
    asked = ids(0, 1, 2)
    before = await index.maxsim(SPACE, question, WHERE, 3, asked)
    await index.upsert(SPACE, [made(1, version=1)])
    after = await index.maxsim(SPACE, question, WHERE, 3, asked)
    assert after[0].memory_id == memory(1)
    assert after[0].score > before[0].score
    await index.delete(SPACE, ids(1))
    assert {memory.memory_id for memory in await index.maxsim(SPACE, question, WHERE, 3, asked)} == set(ids(0, 2))
    await index.close()
