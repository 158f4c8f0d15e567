"""What every vector index does with the passages of long texts: store them, rank by the best one, name them.

Token vectors are an embedder's, in 128ths and shorter than 1: the embedded index keeps passages with such ones only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from agents.ports.indexes import PASSAGES_READ, VectorIndex
from schemas.models.vectors import Matrix, MemoryFilter, Nearest, PassageVectors, Point, Scored, Vector
from streams.adapters.embedding.inference.token_vectors import dequantise_tokens, quantise_tokens
from tests.builders.spaces import space_of
from tests.fakes.vector_indexes import EVERYTHING, QUIET, X, ids, memory, point, vector

pytestmark = QUIET

SPACE = space_of(token_dim=2, passages="400-1")
WIDE = space_of(dim=64, token_dim=32, passages="400-1")

Y = vector(0, 1, 0, 0)
DIAGONAL = vector(1, 1, 0, 0)
HALF = 2.0**-10
"""The error of a cosine of vectors that are stored with 16 bits a number."""

Tokens = Sequence[Sequence[tuple[float, float]]]


def rows(*numbers: tuple[float, float]) -> Matrix:
    return np.array(numbers, np.float32).reshape(-1, 2)


ACROSS = rows((1, 0))


def cut(plain: Point, pooled: Sequence[Vector], tokens: Tokens | None = None) -> Point:
    """Return the point of a long text with these passages."""
    of_each = [[] for _ in pooled] if tokens is None else tokens
    counts = np.array([len(memory) for memory in of_each])
    mean = np.array(pooled).mean(axis=0)
    all_tokens = rows(*(row for memory in of_each for row in memory))
    return replace(plain, vector=mean, tokens=all_tokens, passages=PassageVectors(np.array(pooled), counts))


def drawn(random: np.random.Generator, count: int, dim: int) -> Matrix:
    plain = random.standard_normal((count, dim)).astype(np.float32)
    unit: Matrix = plain / np.linalg.norm(plain, axis=1, keepdims=True)
    return unit


def wide(number: int) -> Point:
    """Return a text of no passages or up to 12, with token vectors like an embedder's."""
    random = np.random.default_rng(number)
    count = 0 if number % 3 == 0 else 1 + number % 12
    counts = random.integers(0, 5, max(count, 1))
    tokens = dequantise_tokens(quantise_tokens(drawn(random, int(counts.sum()) or 1, 32)[: counts.sum()]))
    made = point(number, vector=drawn(random, 1, 64)[0], tokens=tokens)
    return replace(made, passages=PassageVectors(drawn(random, count, 64), counts)) if count else made


def parts_of(found: Nearest) -> dict[tuple[str, int], float]:
    if found.passages is None:
        return {}
    named = (found.table[row] for row in found.passages.rows.tolist())
    keys = zip(named, found.passages.parts.tolist(), strict=True)
    return dict(zip(keys, found.passages.scores.tolist(), strict=True))


def scores(found: Sequence[Scored]) -> dict[str, float]:
    return {memory.memory_id: memory.score for memory in found}


def exact_cosines(points: Sequence[Point], query: Vector) -> dict[tuple[str, int], float]:
    return {
        (point.memory_id, part): float(row @ query / np.linalg.norm(row) / np.linalg.norm(query))
        for point in points
        if point.passages is not None
        for part, row in enumerate(point.passages.pooled)
    }


async def test_best_passage_ranks_a_text(index: VectorIndex) -> None:
    await index.upsert(SPACE, [cut(point(1), [Y, DIAGONAL]), cut(point(2), [-X, X, Y]), cut(point(3), [-X, Y])])
    found = await index.search_passages(SPACE, vector(5, 0, 0, 0), EVERYTHING, 10)
    assert ids(found) == [memory(2), memory(1), memory(3)]
    assert found.scores.tolist() == pytest.approx([1, 0.5**0.5, 0], abs=HALF)


async def test_passages_are_named_with_their_scores(index: VectorIndex) -> None:
    await index.upsert(SPACE, [cut(point(1), [Y, DIAGONAL]), cut(point(2), [-X])])
    found = await index.search_passages(SPACE, X, EVERYTHING, 10)
    expected = {(memory(1), 0): 0, (memory(1), 1): 0.5**0.5, (memory(2), 0): -1}
    assert parts_of(found) == pytest.approx(expected, abs=HALF)


async def test_text_that_is_not_cut_is_not_among_passages(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(1, tokens=ACROSS), point(2), cut(point(3), [Y, Y])])
    assert ids(await index.search_passages(SPACE, X, EVERYTHING, 10)) == [memory(3)]


async def test_space_without_cut_texts_has_no_passages(index: VectorIndex) -> None:
    assert await index.search_passages(SPACE, X, EVERYTHING, 10) == []
    for space in (SPACE, space_of()):
        await index.upsert(space, [point(1)])
        found = await index.search_passages(space, X, EVERYTHING, 10)
        assert list(found) == []
        assert found.passages is None


async def test_score_of_a_cut_text_is_the_mean_of_its_passages_cosines(index: VectorIndex) -> None:
    await index.upsert(SPACE, [cut(point(1), [X, Y, 3 * DIAGONAL]), cut(point(2), [X, -X])])
    found = await index.search(SPACE, vector(5, 0, 0, 0), EVERYTHING, 10)
    assert scores(found) == pytest.approx({memory(1): (1 + 0.5**0.5) / 3, memory(2): 0}, abs=HALF)


async def test_long_text_about_much_is_behind_a_short_one_that_is_nearer(index: VectorIndex) -> None:
    await index.upsert(SPACE, [cut(point(1), [X, Y]), point(2, vector=vector(0.6, 0.8, 0, 0)), point(3, vector=Y)])
    assert ids(await index.search(SPACE, X, EVERYTHING, 10)) == [memory(2), memory(1), memory(3)]


async def test_means_of_cosines_agree_with_exact_arithmetic(index: VectorIndex) -> None:
    points = [chosen for number in range(60) if (chosen := wide(number)).passages is not None]
    await index.upsert(WIDE, points)
    for query in drawn(np.random.default_rng(99), 4, 64):
        exact = exact_cosines(points, query)
        means = {
            point.memory_id: np.mean([score for (owner, _), score in exact.items() if owner == point.memory_id])
            for point in points
        }
        found = await index.search(WIDE, query, EVERYTHING, 100)
        assert scores(found) == pytest.approx(means, abs=1e-3)
        assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


async def test_text_that_is_written_anew_has_its_new_score(index: VectorIndex) -> None:
    await index.upsert(SPACE, [cut(point(1), [X, Y]), point(2)])
    await index.search(SPACE, X, EVERYTHING, 10)
    await index.upsert(SPACE, [point(1), cut(point(2), [X, -X, X])])
    found = await index.search(SPACE, X, EVERYTHING, 10)
    assert scores(found) == pytest.approx({memory(1): 1, memory(2): 1 / 3}, abs=HALF)


async def test_pooled_vector_of_a_cut_text_has_the_direction_of_the_mean(index: VectorIndex) -> None:
    await index.upsert(SPACE, [cut(point(1), [X, Y])])
    found = await index.pooled(SPACE, [memory(1)])
    assert found[memory(1)] == pytest.approx(DIAGONAL * 0.5**0.5, abs=HALF)


async def test_passages_are_no_points(index: VectorIndex) -> None:
    await index.upsert(SPACE, [cut(point(1), [X, Y, X], [[(0.5, 0)], [], [(0, 0.5)]]), point(2)])
    assert await index.count(SPACE, 0) == 2
    assert await index.hashes(SPACE, [memory(1), memory(2)]) == {memory(1): "hash-1", memory(2): "hash-2"}
    assert len(await index.pooled(SPACE, [memory(1)])) == 1


async def test_cosines_of_passages_agree_with_exact_arithmetic(index: VectorIndex) -> None:
    points = [wide(number) for number in range(60)]
    await index.upsert(WIDE, points)
    for query in drawn(np.random.default_rng(99), 4, 64):
        found, exact = await index.search_passages(WIDE, query, EVERYTHING, 100), exact_cosines(points, query)
        assert parts_of(found) == pytest.approx(exact, abs=1e-3)
        assert scores(found) == {
            memory_id: max(score for (owner, _), score in parts_of(found).items() if owner == memory_id)
            for memory_id in found.memory_ids
        }
        assert len(found) == len([point for point in points if point.passages is not None])


async def test_limit_counts_texts_and_not_passages(index: VectorIndex) -> None:
    await index.upsert(SPACE, [cut(point(number), [X] * 30, [[(0.5, 0)]] * 30) for number in range(5, 0, -1)])
    for limit in (0, 1, 3, 9):
        expected = [memory(number) for number in range(1, 6)][:limit]
        assert ids(await index.search_passages(SPACE, X, EVERYTHING, limit)) == expected
        assert ids(await index.maxsim(SPACE, ACROSS, EVERYTHING, limit)) == expected


async def test_only_the_given_memories_are_searched(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(1), *(cut(point(number), [X, Y]) for number in (2, 3, 4))])
    asked = [memory(number) for number in (4, 1, 2, 99, 4)]
    found = await index.search_passages(SPACE, X, EVERYTHING, 10, asked)
    assert ids(found) == [memory(2), memory(4)]
    assert {owner for owner, _ in parts_of(found)} == {memory(2), memory(4)}
    assert ids(await index.search_passages(SPACE, X, EVERYTHING, 1, asked)) == [memory(2)]
    assert await index.search_passages(SPACE, X, EVERYTHING, 10, []) == []


FILTERS: Mapping[str, MemoryFilter] = {
    "scope": MemoryFilter("u1", {"project_id": ("p2",)}),
    "mode": MemoryFilter("u1", modes=("code",)),
    "type": MemoryFilter("u1", types=("semantic",)),
    "time": MemoryFilter("u1", since_ms=1_800_000_000_001, until_ms=1_800_000_000_002),
    "boundary": MemoryFilter("u2"),
}


@pytest.mark.parametrize("name", FILTERS)
async def test_filters_hold_for_passages(index: VectorIndex, name: str) -> None:
    admitted = {"scope": 2, "mode": 3, "type": 4, "time": 5, "boundary": 6}[name]
    plain = [
        point(1),
        point(2, scope={"user_id": "u1", "project_id": "p2"}),
        point(3, mode="code"),
        point(4, type="semantic"),
        point(5, occurred_ms=1_800_000_000_001),
        point(6, boundary="u2"),
    ]
    await index.upsert(SPACE, [cut(each, [Y, X], [[(0.5, 0)], [(0, 0.5)]]) for each in plain])
    for asked in (None, [each.memory_id for each in plain]):
        found = await index.search_passages(SPACE, X, FILTERS[name], 10, asked)
        late = await index.maxsim(SPACE, ACROSS, FILTERS[name], 10, asked)
        assert ids(found) == [memory(admitted)]
        assert ids(late) == [memory(admitted)]


async def test_filter_that_admits_nothing_finds_no_passages(index: VectorIndex) -> None:
    await index.upsert(SPACE, [cut(point(1), [X, Y])])
    assert await index.search_passages(SPACE, X, MemoryFilter("u1", modes=()), 10) == []
    assert await index.search_passages(SPACE, X, MemoryFilter("nobody"), 10) == []


async def test_maxsim_of_a_cut_text_is_that_of_its_best_passage(index: VectorIndex) -> None:
    question = rows((0.5, 0), (0, 0.5))
    both = [[(0.5, 0.0), (0.0, 0.5)]]
    apart = [[(0.5, 0.0)], [(0.0, 0.375)]]
    await index.upsert(
        SPACE,
        [
            point(1, tokens=rows((0.5, 0), (0, 0.125))),
            cut(point(2), [X, Y], apart),
            cut(point(3), [X, Y, X], [*apart, *both]),
            cut(point(4), [X, Y]),
        ],
    )
    found = await index.maxsim(SPACE, question, EVERYTHING, 10)
    assert ids(found) == [memory(3), memory(1), memory(2)]
    assert found.scores.tolist() == pytest.approx([0.5, 0.3125, 0.25], abs=1e-5)
    expected = {(2, 0): 0.25, (2, 1): 0.1875, (3, 0): 0.25, (3, 1): 0.1875, (3, 2): 0.5}
    assert parts_of(found) == pytest.approx(
        {(memory(memory_id), part): score for (memory_id, part), score in expected.items()}
    )


async def test_maxsim_without_cut_texts_names_no_passages(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(1, tokens=ACROSS)])
    assert (await index.maxsim(SPACE, ACROSS, EVERYTHING, 10)).passages is None


async def test_maxsim_reads_at_least_the_nearest_passages(index: VectorIndex) -> None:
    near_first = [X, DIAGONAL, vector(1, 0.5, 0, 0), Y, -X]
    tokens: Tokens = [[(0.25, 0)], [(0.375, 0)], [(0.5, 0)], [(0.5, 0)], [(0.125, 0)]]
    await index.upsert(SPACE, [cut(point(1), near_first, tokens), point(2, tokens=rows((0.25, 0)))])
    for asked in (None, [memory(1), memory(2)]):
        found = await index.maxsim(SPACE, ACROSS, EVERYTHING, 10, asked, X)
        assert scores(found) == pytest.approx({memory(1): 0.5, memory(2): 0.25}, abs=1e-5)
        nearest = {(memory(1), part): tokens[part][0][0] for part in (0, 2)}
        assert {memory_id: parts_of(found)[memory_id] for memory_id in nearest} == pytest.approx(nearest, abs=1e-5)


async def test_nearest_passages_without_tokens_are_not_read(index: VectorIndex) -> None:
    far = [(0.5, 0.0)]
    pooled = [X] * PASSAGES_READ + [-X]
    await index.upsert(SPACE, [cut(point(1), pooled, [*([] for _ in range(PASSAGES_READ)), far])])
    found = await index.maxsim(SPACE, ACROSS, EVERYTHING, 10, None, X)
    assert parts_of(found) == {(memory(1), PASSAGES_READ): 0.5}


async def test_edit_replaces_passages_or_removes_them(index: VectorIndex) -> None:
    long = [cut(point(number), [Y, Y, X], [[], [], [(0.75, 0)]]) for number in (1, 2, 3)]
    await index.upsert(SPACE, long)
    await index.search_passages(SPACE, X, EVERYTHING, 10)
    await index.upsert(SPACE, [cut(point(1), [Y, -X], [[(0.5, 0)], []]), point(2, tokens=rows((0.25, 0)))])
    await index.delete(SPACE, [memory(3)])
    for asked in (None, [memory(number) for number in (1, 2, 3)]):
        found = await index.search_passages(SPACE, X, EVERYTHING, 10, asked)
        assert parts_of(found) == pytest.approx({(memory(1), 0): 0, (memory(1), 1): -1}, abs=HALF)
        late = await index.maxsim(SPACE, ACROSS, EVERYTHING, 10, asked)
        assert scores(late) == {memory(1): 0.5, memory(2): 0.25}


async def test_text_that_grows_is_cut_from_then_on(index: VectorIndex) -> None:
    await index.upsert(SPACE, [point(1, tokens=ACROSS)])
    assert await index.search_passages(SPACE, X, EVERYTHING, 10) == []
    await index.upsert(SPACE, [cut(point(1), [Y, X], [[(0.5, 0)], [(0.25, 0)]])])
    assert ids(await index.search_passages(SPACE, X, EVERYTHING, 10)) == [memory(1)]
    assert scores(await index.maxsim(SPACE, ACROSS, EVERYTHING, 10)) == {memory(1): 0.5}


async def test_vectors_return_passages_as_written(index: VectorIndex) -> None:
    pooled, tokens = [X, Y, vector(0, 0, 3, -4)], [[(0.75, 0.0), (0.5, -0.25)], [], [(0.0, 0.5)]]
    written = cut(point(1), pooled, tokens)
    await index.upsert(SPACE, [written, point(2)])
    found = await index.vectors(SPACE, [memory(1), memory(2)])
    passages = found[memory(1)].passages
    assert passages is not None
    assert passages.pooled == pytest.approx(np.array([X, Y, vector(0, 0, 0.6, -0.8)]), abs=HALF)
    assert passages.token_counts.tolist() == [2, 0, 1]
    assert found[memory(1)].tokens.tolist() == rows(*(row for token in tokens for row in token)).tolist()
    assert found[memory(2)].passages is None


async def test_moved_passages_keep_their_scores(index: VectorIndex) -> None:
    renamed = replace(WIDE, mode="renamed")
    points = [wide(number) for number in range(40)]
    await index.upsert(WIDE, points)
    vectors = await index.vectors(WIDE, [point.memory_id for point in points])
    moved = [
        replace(point, vector=read.pooled, tokens=read.tokens, passages=read.passages)
        for point in points
        for read in (vectors[point.memory_id],)
    ]
    await index.upsert(renamed, moved)
    [query], question = drawn(np.random.default_rng(5), 1, 64), drawn(np.random.default_rng(6), 3, 32)
    found = [await index.search_passages(space, query, EVERYTHING, 50) for space in (WIDE, renamed)]
    late = [await index.maxsim(space, question, EVERYTHING, 50) for space in (WIDE, renamed)]
    whole = [await index.search(space, query, EVERYTHING, 50) for space in (WIDE, renamed)]
    assert scores(whole[1]) == pytest.approx(scores(whole[0]), abs=1e-6)
    for before, after in (found, late):
        assert scores(after) == pytest.approx(scores(before), abs=1e-6)
        assert parts_of(after) == pytest.approx(parts_of(before), abs=1e-6)


async def test_scores_of_passages_do_not_depend_on_other_points(index: VectorIndex) -> None:
    mine, others = [wide(number) for number in range(30)], [wide(number) for number in range(100, 160)]
    [query], question = drawn(np.random.default_rng(7), 1, 64), drawn(np.random.default_rng(8), 4, 32)
    await index.upsert(WIDE, mine)
    asked = [memory.memory_id for memory in mine]
    cosines = await index.search_passages(WIDE, query, EVERYTHING, 50)
    late = await index.maxsim(WIDE, question, EVERYTHING, 50)
    await index.upsert(WIDE, others)
    again = await index.search_passages(WIDE, query, EVERYTHING, 50, asked)
    assert parts_of(again) == pytest.approx(parts_of(cosines), abs=1e-7)
    late_again = await index.maxsim(WIDE, question, EVERYTHING, 50, asked)
    assert late_again == late
    assert parts_of(late_again) == parts_of(late)


REFUSED: Mapping[str, PassageVectors] = {
    "none": PassageVectors(np.empty((0, 4), np.float32), np.array([], np.int64)),
    "another dimension": PassageVectors(np.ones((2, 3), np.float32), np.array([1, 0])),
    "NaN": PassageVectors(np.array([X, X * np.nan]), np.array([1, 0])),
    "counts of another text": PassageVectors(np.array([X, Y]), np.array([1, 1])),
    "a negative count": PassageVectors(np.array([X, Y]), np.array([2, -1])),
    "another number of counts": PassageVectors(np.array([X, Y]), np.array([1])),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_bad_passages_are_rejected_before_anything_is_written(index: VectorIndex, name: str) -> None:
    with pytest.raises(ValueError, match=SPACE.collection):
        await index.upsert(SPACE, [point(1), point(2, tokens=ACROSS, passages=REFUSED[name])])
    assert await index.spaces() == {}


async def test_passages_are_rejected_in_a_space_without_rules_of_cutting(index: VectorIndex) -> None:
    with pytest.raises(ValueError, match=space_of().collection):
        await index.upsert(space_of(), [cut(point(1), [X, Y])])


async def test_search_of_passages_rejects_bad_arguments(index: VectorIndex) -> None:
    await index.upsert(SPACE, [cut(point(1), [X, Y])])
    with pytest.raises(ValueError, match=SPACE.collection):
        await index.search_passages(SPACE, X[:3], EVERYTHING, 1)
    with pytest.raises(ValueError, match="UUID"):
        await index.search_passages(SPACE, X, EVERYTHING, 1, ["t-17"])


async def test_space_without_token_vectors_has_passages_too(index: VectorIndex) -> None:
    plain = space_of(passages="400-1")
    await index.upsert(plain, [replace(cut(point(1), [X, Y]), tokens=None), point(2)])
    assert ids(await index.search_passages(plain, X, EVERYTHING, 10)) == [memory(1)]
    assert ids(await index.search(plain, X, EVERYTHING, 10)) == [memory(2), memory(1)]
    found = (await index.vectors(plain, [memory(1)]))[memory(1)]
    assert found.passages is not None
    assert found.passages.pooled.tolist() == [X.tolist(), Y.tolist()]
    assert found.tokens.shape == (0, 0)
