"""MaxSim of packed rows equals MaxSim of the same rows in memory, to the last digit."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schemas.models.vectors import Matrix, MemoryFilter, Point
from streams.adapters.embedding.inference.token_vectors import dequantise_tokens, quantise_tokens
from streams.adapters.vectors.embedded.boundary_cache import TokenCache, score_rows
from streams.adapters.vectors.embedded.boundary_vectors import BoundaryVectors
from streams.adapters.vectors.embedded.maxsim import QuestionSteps
from streams.adapters.vectors.embedded.packed_vectors import POINT_PAGE_SIZE, PackedVectors, pack_point
from streams.adapters.vectors.embedded.text_columns import TextQuestion
from tests.builders.spaces import space_of
from tests.fakes.vector_indexes import memory, point

SPACE = space_of(dim=4, token_dim=32)
COUNT = POINT_PAGE_SIZE + 400

FILTERS = [
    MemoryFilter("u1"),
    MemoryFilter("u1", since_ms=200, until_ms=700),
    MemoryFilter("u1", {"project_id": ("p1", "p3")}, since_ms=100),
    MemoryFilter("u1", {"project_id": ("p0",), "user_id": None}, modes=("general", "code")),
    MemoryFilter("u1", types=("semantic",), until_ms=900),
    MemoryFilter("u1", modes=()),
    MemoryFilter("u1", since_ms=5000),
    MemoryFilter("nobody"),
]


def drawn(random: np.random.Generator, count: int) -> Matrix:
    """Return token vectors like an embedder's: of length close to 1, quantised to 8 bits."""
    plain = random.standard_normal((count, 32)).astype(np.float32)
    return dequantise_tokens(quantise_tokens(plain / np.linalg.norm(plain, axis=1, keepdims=True)))


def made(random: np.random.Generator, number: int) -> Point:
    """A point with up to 30 token vectors and random filter fields."""
    scope = {"user_id": "u1", "project_id": f"p{random.integers(4)}"}
    plain = point(number, scope=scope, tokens=drawn(random, int(random.integers(30))))
    mode, type_ = str(random.choice(["general", "code"])), str(random.choice(["episodic", "semantic"]))
    return replace(plain, mode=mode, type=type_, occurred_ms=int(random.integers(1000)))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackedVectors]:
    opened, random = PackedVectors(tmp_path_factory.mktemp("packed")), np.random.default_rng(7)
    points = [made(random, number) for number in range(COUNT)]
    opened.put(SPACE.collection, [(point, pack_point(SPACE.fingerprint, point)) for point in points])
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def in_memory(store: PackedVectors) -> BoundaryVectors:
    vectors = BoundaryVectors(SPACE.fingerprint)
    vectors.put([row for _, row in store.of(SPACE, "u1") if row is not None])
    return vectors


@pytest.mark.parametrize("where", FILTERS, ids=str)
async def test_scores_of_packed_rows_equal_those_in_memory(
    store: PackedVectors, in_memory: BoundaryVectors, where: MemoryFilter
) -> None:
    random = np.random.default_rng(11)
    for tokens in (1, 7, 20):
        question = TextQuestion(QuestionSteps.of(drawn(random, tokens) / np.float32(tokens)))
        asked = [memory(int(number)) for number in random.permutation(COUNT + 50)]
        found, unpacked = await score_rows(TokenCache(store), SPACE, question, where, asked)
        expected = [] if where.boundary == "nobody" else in_memory.best_texts(question, where, COUNT, asked)
        assert list(found) == list(expected)
        assert unpacked == []
    assert bool(found) == (where in FILTERS[:5])


async def test_rows_without_packed_vectors_are_named(tmp_path: Path) -> None:
    other, random = PackedVectors(tmp_path), np.random.default_rng(3)
    points = {number: made(random, number) for number in (1, 2, 3)}
    other.put(SPACE.collection, [(points[1], None), (points[2], None)])
    asked, question = [memory(number) for number in (3, 2, 1)], TextQuestion(QuestionSteps.of(drawn(random, 2)))
    found, unpacked = await score_rows(TokenCache(other), SPACE, question, MemoryFilter("u1"), asked)
    assert list(found) == []
    assert unpacked == [memory(1), memory(2)]
    other.close()
