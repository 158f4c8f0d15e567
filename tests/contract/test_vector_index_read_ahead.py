"""What an index on a server answers to the reads of a question that were sent ahead: the same as without.

Other indexes send nothing ahead.
"""

import math
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agents.ports.indexes import PlannedSearch, VectorIndex, VectorReads
from schemas.models.vectors import Encoded, Matrix, MemoryFilter, Nearest, PassageVectors, Point, Scored, Vector
from schemas.state.modes import VectorSpace
from tests.builders.spaces import space_of
from tests.fakes.vector_indexes import ON_SERVER, QUIET, memory, opened, point

pytestmark = QUIET

SPACE = space_of(dim=16, token_dim=8)
ALL = [memory(number) for number in range(120)]

FILTERS = [
    MemoryFilter("u1"),
    MemoryFilter(
        "u1", {"project_id": ("p2",)}, modes=("general", "code"), types=("episodic",), since_ms=1_800_000_000_010
    ),
    MemoryFilter("u1", until_ms=1_800_000_000_040),
    MemoryFilter("u1", modes=()),
    MemoryFilter("nobody"),
]


@pytest.fixture(params=["local", "grpc", ON_SERVER])
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorIndex]:
    async with opened(request.param, tmp_path) as opened_index:
        yield opened_index


def drawn(seed: int, rows: int, dim: int) -> Matrix:
    plain = np.random.default_rng(seed).standard_normal((rows, dim)).astype(np.float32)
    # On the grid of token vectors that the index stores in 16 bits.
    grid: Matrix = np.round(plain / np.linalg.norm(plain, axis=1, keepdims=True) * 127).astype(np.float32) / 127
    return grid


def question(seed: int) -> Encoded:
    return Encoded(drawn(seed, 1, 16)[0], drawn(seed + 1, 5, 8) / np.float32(5))


def points() -> list[Point]:
    return [
        point(
            number,
            vector=drawn(100 + number, 1, 16)[0],
            tokens=drawn(500 + number, 1 + number % 7, 8) if number % 5 else None,
            boundary="u2" if number % 9 == 8 else "u1",
            scope={"user_id": "u1", "project_id": f"p{number % 3}"},
            mode="code" if number % 4 == 3 else "general",
            occurred_ms=1_800_000_000_000 + number,
        )
        for number in range(120)
    ]


def planned(asked: Sequence[Encoded], where: MemoryFilter, candidates: Sequence[str] | None) -> PlannedSearch:
    return PlannedSearch(SPACE, asked, where, 30, 25, candidates)


async def assert_equal(
    reads: VectorReads, index: VectorIndex, search: PlannedSearch, asked_for: Sequence[str] | None
) -> None:
    for question in search.questions:
        by_vector = await reads.search(search.space, question.pooled, search.where, search.dense_limit)
        assert_same(by_vector, await index.search(search.space, question.pooled, search.where, search.dense_limit))
        limit = 25 if asked_for is None else len(asked_for)
        by_tokens = await reads.maxsim(search.space, question.tokens, search.where, limit, asked_for)
        assert_same(by_tokens, await index.maxsim(search.space, question.tokens, search.where, limit, asked_for))


def assert_same(found: Sequence[Scored], expected: Sequence[Scored]) -> None:
    assert [memory.memory_id for memory in found] == [memory.memory_id for memory in expected]
    # Local mode computes the same product twice to 8 digits only.
    assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-6)


@pytest.mark.parametrize("where", FILTERS, ids=range(len(FILTERS)))
async def test_reads_sent_ahead_rank_like_single_ones(index: VectorIndex, where: MemoryFilter) -> None:
    await index.upsert(SPACE, points())
    search = planned([question(1), question(7)], where, None)
    await assert_equal(await index.read_ahead([search]), index, search, None)
    assert bool(await index.search(SPACE, search.questions[0].pooled, where, 5)) == (where in FILTERS[:3])


@pytest.mark.parametrize("where", FILTERS, ids=range(len(FILTERS)))
async def test_candidates_and_late_interaction_in_one_query_rank_like_two(
    index: VectorIndex, where: MemoryFilter
) -> None:
    await index.upsert(SPACE, points())
    search = planned([question(1), question(7)], where, ALL[::4])
    nearest = await index.search(SPACE, search.questions[0].pooled, where, search.dense_limit)
    chosen = sorted({*ALL[::4], *(memory.memory_id for memory in nearest)})
    reads = await index.read_ahead([search])
    await assert_equal(reads, index, search, chosen)
    # Also memories that are no candidates, and unknown ones.
    await assert_equal(reads, index, search, [*ALL, memory(999)])
    await assert_equal(reads, index, search, ALL[:3])


async def test_scores_that_tie_at_the_cut_are_ordered_by_id(index: VectorIndex) -> None:
    asked = question(3)
    same = [point(number, vector=asked.pooled, tokens=asked.tokens) for number in range(119, -1, -1)]
    await index.upsert(SPACE, same)
    for candidates, asked_for in ((None, None), (ALL[60:], ALL[:5]), ([], ALL[:90])):
        search = planned([asked], MemoryFilter("u1"), candidates)
        reads = await index.read_ahead([search])
        found = await reads.search(SPACE, asked.pooled, search.where, search.dense_limit)
        assert [memory.memory_id for memory in found] == ALL[:30]
        await assert_equal(reads, index, search, asked_for)


async def test_several_spaces_are_asked_at_once_and_fail_alone(index: VectorIndex) -> None:
    plain, missing = space_of(dim=16, mode="plain"), space_of(dim=16, mode="missing", token_dim=8)
    await index.upsert(SPACE, points())
    await index.upsert(plain, [replace(point, tokens=None) for point in points()])
    asked, where = question(5), MemoryFilter("u1")
    bad = Encoded(np.full(16, math.nan, np.float32), asked.tokens)
    searches = [
        PlannedSearch(plain, [Encoded(asked.pooled, np.empty((0, 0), np.float32))], where, 10),
        planned([bad], where, None),
        PlannedSearch(missing, [asked], where, 10, 10),
    ]
    reads = await index.read_ahead(searches)
    pooled: Vector = searches[0].questions[0].pooled
    assert_same(await reads.search(plain, pooled, where, 10), await index.search(plain, pooled, where, 10))
    assert await reads.search(missing, asked.pooled, where, 10) == []
    assert await reads.maxsim(missing, asked.tokens, where, 10) == []
    with pytest.raises(ValueError, match=SPACE.collection):
        await reads.search(SPACE, bad.pooled, where, 30)


async def test_read_that_was_not_planned_is_answered(index: VectorIndex) -> None:
    await index.upsert(SPACE, points())
    asked, where = question(1), MemoryFilter("u1")
    reads = await index.read_ahead([PlannedSearch(SPACE, [asked], where, 10)])
    for other_space, other, other_where, limit in unplanned(asked):
        found = await reads.search(other_space, other.pooled, other_where, limit)
        assert_same(found, await index.search(other_space, other.pooled, other_where, limit))
        by_tokens = await reads.maxsim(other_space, other.tokens, other_where, limit)
        assert_same(by_tokens, await index.maxsim(other_space, other.tokens, other_where, limit))


def unplanned(asked: Encoded) -> list[tuple[VectorSpace, Encoded, MemoryFilter, int]]:
    where = MemoryFilter("u1")
    return [
        (SPACE, question(9), where, 10),
        (SPACE, asked, MemoryFilter("u2"), 10),
        (SPACE, asked, where, 40),
        (SPACE, asked, where, 0),
    ]


CUT_SPACE = space_of(dim=16, token_dim=8, passages="400-1")


def cut_points() -> list[Point]:
    made = points()
    for number in range(0, len(made), 3):
        counts = np.array([(number + part) % 4 for part in range(2 + number % 9)])
        tokens = drawn(900 + number, 40, 8)[: counts.sum()]
        passages = PassageVectors(drawn(300 + number, len(counts), 16), counts)
        made[number] = replace(made[number], tokens=tokens, passages=passages)
    return made


def assert_same_passages(found: Nearest, expected: Nearest) -> None:
    assert_same(found, expected)
    for memory_id in expected.memory_ids[:5]:
        assert scores_of(found, memory_id)[:1] == pytest.approx(scores_of(expected, memory_id)[:1], abs=1e-6)


def scores_of(found: Nearest, memory_id: str) -> list[float]:
    if found.passages is None:
        return []
    columns = zip(found.passages.rows.tolist(), found.passages.scores.tolist(), strict=True)
    return sorted((score for row, score in columns if found.table[row] == memory_id), reverse=True)


@pytest.mark.parametrize("where", FILTERS, ids=range(len(FILTERS)))
async def test_reads_of_passages_sent_ahead_rank_like_single_ones(index: VectorIndex, where: MemoryFilter) -> None:
    await index.upsert(CUT_SPACE, cut_points())
    asked = [question(1), question(7)]
    search = PlannedSearch(CUT_SPACE, asked, where, 30, 25, passage_limit=9)
    reads = await index.read_ahead([search])
    await assert_equal(reads, index, search, None)
    for each in asked:
        for limit, some in ((9, None), (4, None), (9, ALL[:50])):
            whole = await reads.search(CUT_SPACE, each.pooled, where, 30)
            assert_same(whole, await index.search(CUT_SPACE, each.pooled, where, 30))
            found = await reads.search_passages(CUT_SPACE, each.pooled, where, limit, some)
            assert_same_passages(found, await index.search_passages(CUT_SPACE, each.pooled, where, limit, some))
        late = await reads.maxsim(CUT_SPACE, each.tokens, where, 25, None, each.pooled)
        assert_same_passages(late, await index.maxsim(CUT_SPACE, each.tokens, where, 25, None, each.pooled))


@pytest.mark.parametrize("where", FILTERS, ids=range(len(FILTERS)))
async def test_candidates_of_cut_texts_rank_like_single_reads(index: VectorIndex, where: MemoryFilter) -> None:
    await index.upsert(CUT_SPACE, cut_points())
    search = PlannedSearch(CUT_SPACE, [question(1), question(7)], where, 30, 25, ALL[::4], passage_limit=9)
    reads = await index.read_ahead([search])
    for asked in (ALL[::4], [*ALL, memory(999)], ALL[:3]):
        await assert_equal(reads, index, search, asked)
        for each in search.questions:
            late = await reads.maxsim(CUT_SPACE, each.tokens, where, len(asked), asked)
            assert_same_passages(late, await index.maxsim(CUT_SPACE, each.tokens, where, len(asked), asked))


async def test_passages_of_one_text_do_not_crowd_out_others(index: VectorIndex) -> None:
    asked = question(3)
    long = PassageVectors(np.repeat(asked.pooled[np.newaxis], 60, axis=0), np.zeros(60, np.int64))
    short = PassageVectors(drawn(11, 1, 16), np.zeros(1, np.int64))
    plain = [point(number, vector=asked.pooled) for number in range(3)]
    await index.upsert(CUT_SPACE, [replace(plain[0], passages=long), replace(plain[1], passages=short), plain[2]])
    search = PlannedSearch(CUT_SPACE, [asked], MemoryFilter("u1"), 30, passage_limit=2)
    reads = await index.read_ahead([search])
    found = await reads.search_passages(CUT_SPACE, asked.pooled, search.where, 2)
    assert found.memory_ids == [memory(0), memory(1)]
