"""What every vector index does with token vectors: store them and rank by MaxSim."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from agents.ports.indexes import VectorIndex
from schemas.models.vectors import Matrix, MemoryFilter, Point, Scored
from streams.adapters.embedding.inference.token_vectors import dequantise_tokens, quantise_tokens
from tests.builders.spaces import space_of
from tests.fakes.vector_indexes import EVERYTHING, QUIET, X, ids, memory, point

pytestmark = QUIET

SPACE = space_of(token_dim=2)
WIDE = space_of(token_dim=128)

ROUNDED = 5e-3
"""The error that the port allows for a row of length 1."""


def rows(*numbers: tuple[float, float]) -> Matrix:
    return np.array(numbers, np.float32).reshape(-1, 2)


ACROSS = rows((1, 0))


def drawn(seed: int, count: int) -> Matrix:
    """Return token vectors like an embedder's: of length close to 1, quantised to 8 bits."""
    plain = np.random.default_rng(seed).standard_normal((count, 128))
    return dequantise_tokens(quantise_tokens((plain / np.linalg.norm(plain, axis=1, keepdims=True)).astype(np.float32)))


def wide(number: int) -> Point:
    return point(number, tokens=drawn(number, 1 + number % 30))


def ids_of(points: Sequence[Point]) -> list[str]:
    return [point.memory_id for point in points]


def scores(found: Sequence[Scored]) -> dict[str, float]:
    return {memory.memory_id: memory.score for memory in found}


def test_token_vectors_give_a_space_another_digest() -> None:
    assert len({space_of().collection, SPACE.collection, WIDE.collection}) == 3


async def test_maxsim_sums_the_best_dot_product_of_each_query_row(index: VectorIndex) -> None:
    tokens = [rows((1, 0), (0, 1)), rows((0.5, 0.5)), rows((0, -1), (-1, 0), (0.25, 0)), rows((0, -1))]
    await index.upsert(SPACE, [point(number, tokens=token) for number, token in enumerate(tokens)])
    found = await index.maxsim(SPACE, rows((0.75, 0), (0, 0.25)), EVERYTHING, 10)
    assert ids(found) == [memory(0), memory(1), memory(2), memory(3)]
    assert [hit.score for hit in found] == pytest.approx([1, 0.5, 0.1875, -0.25], abs=1e-5)


async def test_maxsim_is_near_exact_arithmetic_and_is_not_clipped(index: VectorIndex) -> None:
    points = [wide(number) for number in range(90)]
    await index.upsert(WIDE, points)
    for seed in range(5):
        question = drawn(1000 + seed, 3 + 4 * seed)
        found = scores(await index.maxsim(WIDE, question, EVERYTHING, 100))
        for written in points:
            assert written.tokens is not None
            exact = (question.astype(np.float64) @ written.tokens.T).max(axis=1).sum()
            assert found[written.memory_id] == pytest.approx(exact, abs=ROUNDED * len(question))
        assert max(found.values()) > 1 or seed == 0


async def test_memory_without_tokens_is_found_by_its_pooled_vector(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(1), point(2, tokens=rows()), point(3, tokens=ACROSS)])
    assert ids(await index.maxsim(SPACE, ACROSS, EVERYTHING, 10)) == [memory(3)]
    assert ids(await index.maxsim(SPACE, ACROSS, EVERYTHING, 10, [memory(1), memory(2)])) == []
    assert ids(await index.search(SPACE, X, EVERYTHING, 10)) == [memory(1), memory(2), memory(3)]


async def test_maxsim_scores_only_the_given_memories(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(number, tokens=rows((number / 8, 0))) for number in range(6)])
    asked = [memory(number) for number in (2, 5, 99, 3, 5)]
    assert ids(await index.maxsim(SPACE, ACROSS, EVERYTHING, 10, asked)) == [memory(5), memory(3), memory(2)]
    assert ids(await index.maxsim(SPACE, ACROSS, EVERYTHING, 2, asked)) == [memory(5), memory(3)]
    assert await index.maxsim(SPACE, ACROSS, EVERYTHING, 10, []) == []


async def test_maxsim_respects_the_filter(index: VectorIndex) -> None:
    others = [point(2, boundary="u2", tokens=ACROSS), point(3, scope={"user_id": "u1", "project_id": "p2"})]
    await index.upsert(SPACE, [point(1, tokens=ACROSS), *(replace(other, tokens=ACROSS) for other in others)])
    everyone = [memory(1), memory(2), memory(3)]
    for asked in (None, everyone):
        found = await index.maxsim(SPACE, ACROSS, MemoryFilter("u1", {"project_id": ("p1",)}), 10, asked)
        assert ids(found) == [memory(1)]
        assert await index.maxsim(SPACE, ACROSS, MemoryFilter("u1", modes=()), 10, asked) == []
        assert await index.maxsim(SPACE, ACROSS, MemoryFilter("nobody"), 10, asked) == []


async def test_equal_maxsim_scores_are_ordered_by_id_at_the_limit(index: VectorIndex) -> None:
    same = [point(number, tokens=rows((0.5, 0), (0, 1))) for number in range(300, 0, -1)]
    await index.upsert(SPACE, [point(999, tokens=ACROSS), *same])
    expected = [memory(number) for number in (999, 1, 2, 3, 4, 5, 6)]
    assert ids(await index.maxsim(SPACE, ACROSS, EVERYTHING, 7)) == expected
    everyone = [memory(999), *ids_of(same)]
    assert ids(await index.maxsim(SPACE, ACROSS, EVERYTHING, 7, everyone)) == expected
    assert await index.maxsim(SPACE, ACROSS, EVERYTHING, 0) == []


async def test_scores_do_not_depend_on_other_points(index: VectorIndex) -> None:
    mine, question = [wide(number) for number in range(40)], drawn(7, 9) / np.float32(9)
    await index.upsert(WIDE, mine)
    alone = await index.maxsim(WIDE, question, EVERYTHING, 50)
    others = [replace(wide(number), boundary="u2", tokens=drawn(number, 40)) for number in range(100, 400)]
    await index.upsert(WIDE, others)
    assert await index.maxsim(WIDE, question, EVERYTHING, 50) == alone
    assert await index.maxsim(WIDE, question, EVERYTHING, 50, ids_of(mine)) == alone
    await index.upsert(WIDE, list(reversed(mine)))
    assert await index.maxsim(WIDE, question, EVERYTHING, 50) == alone


async def test_same_id_again_replaces_its_tokens_or_removes_them(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(1, tokens=ACROSS), point(2, tokens=ACROSS), point(3, tokens=ACROSS)])
    await index.upsert(SPACE, [point(1, tokens=rows((0.5, 0), (0, 1))), point(2)])
    await index.delete(SPACE, [memory(3)])
    assert scores(await index.maxsim(SPACE, ACROSS, EVERYTHING, 10)) == {memory(1): 0.5}


async def test_tokens_are_returned_in_order_with_the_vector(index: VectorIndex) -> None:
    vectors = rows((0, 1), (-0.5, 0.25), (0, 1))
    await index.upsert(SPACE, [point(1, tokens=vectors), point(2)])
    found = await index.vectors(SPACE, [memory(1), memory(2), memory(3)])
    assert set(found) == {memory(1), memory(2)}
    assert found[memory(1)].tokens.tolist() == vectors.tolist()
    assert found[memory(1)].tokens.dtype == np.float32
    assert found[memory(2)].tokens.shape == (0, 2)
    assert all(each.pooled == pytest.approx(X) for each in found.values())


async def test_space_without_tokens_gives_none(index: VectorIndex) -> None:
    await index.upsert(space_of(), [point(1), point(2, tokens=rows())])
    assert (await index.vectors(space_of(), [memory(2)]))[memory(2)].tokens.shape == (0, 0)
    assert await index.maxsim(space_of(), rows(), EVERYTHING, 10) == []


async def test_moved_vectors_keep_their_scores(index: VectorIndex) -> None:
    renamed, question = space_of(mode="renamed", token_dim=128), drawn(5, 11) / np.float32(11)
    await index.upsert(WIDE, [wide(number) for number in range(70)])
    vectors = await index.vectors(WIDE, [memory(number) for number in range(70)])
    moved = [
        point(number, vector=vectors[memory(number)].pooled, tokens=vectors[memory(number)].tokens)
        for number in range(70)
    ]
    await index.upsert(renamed, moved)
    assert await index.maxsim(renamed, question, EVERYTHING, 70) == await index.maxsim(WIDE, question, EVERYTHING, 70)


async def test_more_than_one_batch_of_long_texts_is_written_and_compared(index: VectorIndex) -> None:
    long = [point(number, tokens=drawn(number, 250)) for number in range(20)]
    await index.upsert(WIDE, [*long, *(point(number) for number in range(20, 300))])
    assert len(await index.maxsim(WIDE, drawn(1, 2), EVERYTHING, 300)) == 20
    assert await index.count(WIDE, 0) == 300


async def test_query_without_token_vectors_finds_nothing(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(1, tokens=ACROSS)])
    assert await index.maxsim(SPACE, rows(), EVERYTHING, 10) == []
    assert await index.maxsim(space_of(mode="never-written", token_dim=2), ACROSS, EVERYTHING, 10) == []


REFUSED = {
    "another dimension": np.ones((2, 3), np.float32),
    "a vector": np.ones(2, np.float32),
    "NaN": rows((1, 0), (math.nan, 0)),
    "infinity": rows((math.inf, 0)),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_bad_token_vectors_are_rejected_before_anything_is_written(index: VectorIndex, name: str) -> None:
    with pytest.raises(ValueError, match=SPACE.collection):
        await index.upsert(SPACE, [point(1, tokens=ACROSS), point(2, tokens=REFUSED[name])])
    assert await index.spaces() == {}
    await index.upsert(SPACE, [point(1, tokens=ACROSS)])
    with pytest.raises(ValueError, match=SPACE.collection):
        await index.maxsim(SPACE, REFUSED[name], EVERYTHING, 1)
    with pytest.raises(ValueError, match="UUID"):
        await index.maxsim(SPACE, ACROSS, EVERYTHING, 1, ["t-17"])


async def test_token_vectors_are_rejected_in_a_space_without_tokens(index: VectorIndex) -> None:
    with pytest.raises(ValueError, match=space_of().collection):
        await index.upsert(space_of(), [point(1, tokens=ACROSS)])
    with pytest.raises(ValueError, match=space_of().collection):
        await index.maxsim(space_of(), ACROSS, EVERYTHING, 1)
