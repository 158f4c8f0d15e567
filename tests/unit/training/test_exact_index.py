"""The index of training finds what other indexes find, passages of long texts included."""

import numpy as np
import pytest

from schemas.models.vectors import Matrix, MemoryFilter, Nearest, PassageVectors, Point
from tests.builders.spaces import space_of
from tests.fakes.vector_index import FakeIndex
from tests.fakes.vector_indexes import memory, point
from training.ranking.exact_index import ExactIndex

SPACE = space_of(dim=16, token_dim=8, passages="400-1")
WHERE = MemoryFilter("u1")
COUNT = 40


def drawn(seed: list[int], rows: int, dim: int) -> Matrix:
    plain = np.random.default_rng(seed).standard_normal((rows, dim)).astype(np.float32)
    unit: Matrix = plain / np.linalg.norm(plain, axis=1, keepdims=True)
    return unit


def made(number: int) -> Point:
    """A text of up to six passages, some without token vectors; every fourth is not cut."""
    counts = np.array([1 + (number + part) % 3 if part else number % 2 for part in range(1 + number % 6)])
    tokens = drawn([number], max(int(counts.sum()), 1), 8)
    passages = PassageVectors(drawn([number, 1], len(counts), 16), counts) if number % 4 and counts.sum() else None
    return point(number, vector=drawn([number, 2], 1, 16)[0], tokens=tokens, passages=passages)


def parts(found: Nearest) -> dict[tuple[str, int], float]:
    assert found.passages is not None
    owners = [found.table[row] for row in found.passages.rows.tolist()]
    keys = zip(owners, found.passages.parts.tolist(), strict=True)
    return dict(zip(keys, found.passages.scores.tolist(), strict=True))


def assert_same(found: Nearest, expected: Nearest) -> None:
    assert found.memory_ids == expected.memory_ids
    assert found.scores.tolist() == pytest.approx(expected.scores.tolist(), abs=1e-6)
    assert parts(found) == pytest.approx(parts(expected), abs=1e-6)


@pytest.mark.parametrize("asked", [None, [memory(number) for number in range(1, COUNT, 3)]])
async def test_searches_find_what_the_fake_index_finds(asked: list[str] | None) -> None:
    points = [made(number) for number in range(COUNT)]
    exact, fake = ExactIndex(points), FakeIndex()
    await fake.upsert(SPACE, points)
    [query], question = drawn([99], 1, 16), drawn([98], 4, 8)
    for limit in (COUNT, 5):
        assert_same(
            await exact.search_passages(SPACE, query, WHERE, limit, asked),
            await fake.search_passages(SPACE, query, WHERE, limit, asked),
        )
        for pooled in (None, query):
            assert_same(
                await exact.maxsim(SPACE, question, WHERE, limit, asked, pooled),
                await fake.maxsim(SPACE, question, WHERE, limit, asked, pooled),
            )


async def test_whole_texts_have_the_scores_of_the_fake_index() -> None:
    points = [made(number) for number in range(COUNT)]
    exact, fake = ExactIndex(points), FakeIndex()
    await fake.upsert(SPACE, points)
    [query] = drawn([99], 1, 16)
    found, expected = [dict(await index.search(SPACE, query, WHERE, COUNT)) for index in (exact, fake)]
    assert found == pytest.approx(expected, abs=1e-6)
