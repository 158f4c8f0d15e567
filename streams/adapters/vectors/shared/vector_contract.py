"""The contract that all vector indexes share: validation of arguments and order of results.

Guaranteed: nothing that an engine would store silently (NaN) or reject late (a dimension, an id) reaches it.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np

from schemas.models.vectors import Matrix, Nearest, PassageVectors, Point, Scored, ScoredPassages, Vector
from schemas.state.modes import Fingerprint, VectorSpace

PLAIN_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The canonical form of an id. Parsing the hundreds of ids of a query would take longer than scoring them."""

POINT_BATCH_SIZE = 256
"""Points or ids in one call of an engine: the embedded one holds the GIL, for about 10 ms with 256."""

MAX_BATCH_ROWS = 2048
"""Vectors of tokens and passages in one write: those of a hundred short texts, or of four long ones. With 128 numbers
each they hold the GIL for 15 ms, and are 3 MB of JSON for a server, which accepts 32."""

VECTOR_BATCH_SIZE = 32
"""Points with vectors in one read: 3 ms with the tokens of short texts, 30 ms with those of long ones."""

WIDENING_FACTOR = 4
"""The factor by which the limit grows while scores tie at the cut: few rounds, little waste."""


class ScoredText(NamedTuple):
    """A scored text: the passage of this number of a cut text; without a number a whole text.

    `length` is that of the mean of a cut text's passages. An engine compares directions: of the whole text its `score`
    is the cosine with the mean, and `score` times `length` the mean of the cosines.
    """

    memory_id: str
    score: float
    part: int | None = None
    length: float = 1.0


Hit = TypeVar("Hit", Scored, ScoredText)


def validate_points(space: VectorSpace, points: Sequence[Point]) -> list[Point]:
    """Return the points to write, the last one of each id, that of a cut text with the mean of its passages.

    Raises ValueError for invalid vectors, passages or ids.
    """
    last = {point.memory_id: point for point in points}
    validate_ids(tuple(last))
    for point in points:
        check_vector(space, point.vector)
        if point.tokens is not None:
            check_rows(space, point.tokens)
        if point.passages is not None:
            check_passages(space, point.passages, count_token_rows(point))
    # Vectors that were read have the direction of the mean alone.
    return [
        point if point.passages is None else replace(point, vector=point.passages.mean()) for point in last.values()
    ]


def check_vector(space: VectorSpace, vector: Vector) -> None:
    """Raise ValueError for another shape than (dim,), NaN or infinity."""
    if vector.shape != (space.fingerprint.dim,):
        raise ValueError(f"{space.collection} takes vectors of {space.fingerprint.dim} numbers, not {vector.shape}")
    if not np.isfinite(vector).all():
        raise ValueError(f"a vector for {space.collection} holds NaN or infinity")


def check_rows(space: VectorSpace, tokens: Matrix) -> None:
    """Raise ValueError for rows of another dimension, any in a space without token vectors, NaN or infinity.

    An empty matrix is valid in every space.
    """
    if not len(tokens):
        return
    if tokens.shape[1:] != (space.fingerprint.token_dim,) or not space.fingerprint.token_dim:
        raise ValueError(
            f"{space.collection} takes token vectors of {space.fingerprint.token_dim} numbers, not {tokens.shape}"
        )
    if not np.isfinite(tokens).all():
        raise ValueError(f"a token vector for {space.collection} holds NaN or infinity")


def check_passages(space: VectorSpace, passages: PassageVectors, token_rows: int) -> None:
    """Raise ValueError for passages that are not those of a text with so many token vectors, or in another space."""
    name, counts = space.collection, passages.token_counts
    if space.fingerprint.passages is None:
        raise ValueError(f"{name} takes no passages: its fingerprint names no rules by which texts are cut")
    if not len(passages) or passages.pooled.shape != (len(passages), space.fingerprint.dim):
        raise ValueError(f"{name} takes passages of {space.fingerprint.dim} numbers, not {passages.pooled.shape}")
    if not np.isfinite(passages.pooled).all():
        raise ValueError(f"a passage for {name} holds NaN or infinity")
    if counts.shape != (len(passages),) or (counts < 0).any() or counts.sum() != token_rows:
        raise ValueError(f"passages for {name} have {counts.tolist()} token vectors, their text {token_rows}")


def validate_ids(memory_ids: Sequence[str]) -> list[str]:
    """Return each id once, in order. Raises ValueError for one that is no UUID in canonical form."""
    for memory_id in memory_ids:
        if PLAIN_UUID.fullmatch(memory_id) is None:
            raise ValueError(f"{memory_id!r} is no UUID in canonical form")
    return list(dict.fromkeys(memory_ids))


def check_fingerprint(space: VectorSpace, stored: Fingerprint) -> None:
    """Raise ValueError if a collection has the fingerprint of another vector space."""
    if stored != space.fingerprint:
        raise ValueError(f"collection {space.collection} holds vectors of {stored}, not of {space.fingerprint}")


def write_batches(points: Iterable[Point]) -> Iterator[list[Point]]:
    """Split points into batches for one write each, limited in points, and in vectors of tokens and passages."""
    batch: list[Point] = []
    rows = 0
    for point in points:
        batch.append(point)
        rows += count_token_rows(point) + (0 if point.passages is None else len(point.passages))
        if len(batch) == POINT_BATCH_SIZE or rows >= MAX_BATCH_ROWS:
            yield batch
            batch, rows = [], 0
    if batch:
        yield batch


def count_token_rows(point: Point) -> int:
    return 0 if point.tokens is None else len(point.tokens)


def sort_by_score(scores: Iterable[tuple[object, float]]) -> list[Scored]:
    scored = [Scored(str(memory_id), score) for memory_id, score in scores]
    return sorted(scored, key=lambda hit: (-hit.score, hit.memory_id))


def best_memories(hits: Iterable[ScoredText], limit: int) -> Nearest:
    """Return memories by their best text, best first, ties by id, with all scored passages."""
    texts = list(hits)
    best: dict[str, float] = {}
    for hit in texts:
        best[hit.memory_id] = max(hit.score, best.get(hit.memory_id, hit.score))
    table = sorted(best, key=lambda memory_id: (-best[memory_id], memory_id))
    rows = {memory_id: row for row, memory_id in enumerate(table)}
    parts = [hit for hit in texts if hit.part is not None]
    passages = ScoredPassages(
        rows=np.array([rows[hit.memory_id] for hit in parts], np.int64),
        parts=np.array([hit.part for hit in parts], np.int64),
        scores=np.array([hit.score for hit in parts], np.float64),
    )
    limit = max(limit, 0)
    scores = np.array([best[memory_id] for memory_id in table[:limit]], np.float64)
    return Nearest(table, scores, np.arange(len(scores)), passages if parts else None)


def by_direction(hits: Iterable[ScoredText]) -> list[ScoredText]:
    """Sort whole texts by cosine, clipped to -1..1 against rounding errors, ties by id."""
    return sorted(_clipped(hits), key=lambda hit: (-hit.score, hit.memory_id))


def _clipped(hits: Iterable[ScoredText]) -> Iterator[ScoredText]:
    for hit in hits:
        # Hardly any is outside, and a copy of each would cost more than the sorting.
        is_inside = -1.0 <= hit.score <= 1.0
        yield hit if is_inside else hit._replace(score=min(1.0, max(-1.0, hit.score)))


def score_wholes(hits: Iterable[ScoredText]) -> list[Scored]:
    """Return whole texts by the product with the vector in its length, best first, ties by id."""
    return sort_by_score((hit.memory_id, hit.score * hit.length) for hit in hits)


def by_score(hits: Iterable[ScoredText]) -> list[ScoredText]:
    return sorted(hits, key=lambda hit: -hit.score)


def by_cosine(hits: Iterable[ScoredText]) -> list[ScoredText]:
    """Sort texts by cosine, clipped to -1..1 against rounding errors."""
    return by_score(_clipped(hits))


def hits_of(nearest: Nearest) -> list[ScoredText]:
    """Return memories as hits: those of cut texts by their passages, all others by themselves."""
    if nearest.passages is None:
        return [ScoredText(*hit) for hit in nearest]
    passages, cut = nearest.passages, frozenset(nearest.passages.rows.tolist())
    columns = zip(passages.rows.tolist(), passages.scores.tolist(), passages.parts.tolist(), strict=True)
    whole = zip(nearest.rows.tolist(), nearest.scores.tolist(), strict=True)
    return [
        *(ScoredText(nearest.table[row], score) for row, score in whole if row not in cut),
        *(ScoredText(nearest.table[row], score, part) for row, score, part in columns),
    ]


def is_settled(hits: Sequence[ScoredText], count: int, limit: int) -> bool:
    """True if the best `count` texts, best first, decide which are the best `limit` memories, ties by id."""
    if len(hits) < count:
        return True
    best = dict[str, float]()
    for hit in hits:
        best.setdefault(hit.memory_id, hit.score)
    return len(best) > limit and hits[-1].score < list(best.values())[limit - 1]


async def fetch_best(fetch: Callable[[int], Awaitable[list[ScoredText]]], limit: int) -> Nearest:
    """Return the best `limit` memories, ties by id, by the texts of `fetch`, best first; more of them as needed."""
    if limit < 1:
        return Nearest.of([])
    count = limit + 1
    hits = await fetch(count)
    while not is_settled(hits, count, limit):
        count *= WIDENING_FACTOR
        hits = await fetch(count)
    return best_memories(hits, limit)


async def fetch_wholes(fetch: Callable[[int], Awaitable[list[ScoredText]]], limit: int) -> list[Scored]:
    """Return the best `limit` hits of `fetch` by direction, ties by id, in order of score."""
    return score_wholes(await fetch_nearest(fetch, limit))


async def fetch_nearest(fetch: Callable[[int], Awaitable[list[Hit]]], limit: int) -> list[Hit]:
    """Return the best `limit` hits of `fetch`, ties by id.

    Engines return arbitrary ones of the hits that tie at the cut, and repeated short texts do tie. So this fetches one
    more, and then more as long as the last hit ties with the last wanted one.
    """
    if limit < 1:
        return []
    count = limit + 1
    hits = await fetch(count)
    while len(hits) >= count and hits[-1].score == hits[limit - 1].score:
        count *= WIDENING_FACTOR
        hits = await fetch(count)
    return hits[:limit]
