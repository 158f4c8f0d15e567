"""What every vector index promises alike, whatever engine is behind it: what it refuses, and the order of its answer.

In go the port's arguments and what an engine found; out come checked arguments and ranked ids. Guaranteed: nothing
that the engines would keep silently (NaN) or refuse late (a dimension, an id) reaches them.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from schemas.modes import Fingerprint, VectorSpace
from schemas.vectors import Matrix, Point, Scored, Vector

T = TypeVar("T")

PLAIN_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""An id as it is spelled everywhere. To parse and spell hundreds of a question anew takes longer than to score them."""

POINT_BATCH_SIZE = 256
"""Points or ids in one call of an engine: a call of the embedded one holds the interpreter, 256 for about 10 ms."""

MAX_BATCH_ROWS = 2048
"""Token vectors in one call that writes: those of a hundred short texts, or of eight long ones. Of 128 numbers each
they hold the interpreter for 15 ms, and are 3 MB of JSON for a server, which takes 32."""

VECTOR_BATCH_SIZE = 32
"""Points whose vectors are read in one call: with the tokens of short texts 3 ms, with those of long ones 30."""

WIDENING_FACTOR = 4
"""How much more is asked for while equal scores straddle the cut. Few rounds, little waste."""


def validate_points(space: VectorSpace, points: Sequence[Point]) -> list[Point]:
    """Give the points to write, one an id, the later wins. Raises ValueError for a vector or an id that is refused."""
    last = {point.memory_id: point for point in points}
    validate_ids(tuple(last))
    for point in points:
        check_vector(space, point.vector)
        if point.tokens is not None:
            check_rows(space, point.tokens)
    return list(last.values())


def validate_vector(space: VectorSpace, vector: Vector) -> list[float]:
    """Give the vector as an engine takes it. Raises ValueError as `check_vector` does."""
    check_vector(space, vector)
    numbers: list[float] = vector.tolist()
    return numbers


def check_vector(space: VectorSpace, vector: Vector) -> None:
    """Raise ValueError for another shape than (dim,), NaN or infinity."""
    if vector.shape != (space.fingerprint.dim,):
        raise ValueError(f"{space.collection} takes vectors of {space.fingerprint.dim} numbers, not {vector.shape}")
    if not np.isfinite(vector).all():
        raise ValueError(f"a vector for {space.collection} holds NaN or infinity")


def validate_rows(space: VectorSpace, tokens: Matrix) -> list[list[float]]:
    """Give token vectors as an engine takes them. Raises ValueError as `check_rows` does."""
    check_rows(space, tokens)
    rows: list[list[float]] = tokens.tolist()
    return rows


def check_rows(space: VectorSpace, tokens: Matrix) -> None:
    """Raise ValueError for rows of another dimension, or any in a space that keeps none, and for NaN or infinity.

    No row fits every space.
    """
    if not len(tokens):
        return
    if tokens.shape[1:] != (space.fingerprint.token_dim,) or not space.fingerprint.token_dim:
        raise ValueError(
            f"{space.collection} takes token vectors of {space.fingerprint.token_dim} numbers, not {tokens.shape}"
        )
    if not np.isfinite(tokens).all():
        raise ValueError(f"a token vector for {space.collection} holds NaN or infinity")


def validate_ids(memory_ids: Sequence[str]) -> list[str]:
    """Give each id once, in order. Raises ValueError for one that is no UUID in its usual spelling."""
    for memory_id in memory_ids:
        if PLAIN_UUID.fullmatch(memory_id) is None:
            raise ValueError(f"{memory_id!r} is no UUID in its usual spelling")
    return list(dict.fromkeys(memory_ids))


def check_fingerprint(space: VectorSpace, kept: Fingerprint) -> None:
    """Raise ValueError where a collection holds vectors of another space than the one that is asked for."""
    if kept != space.fingerprint:
        raise ValueError(f"collection {space.collection} holds vectors of {kept}, not of {space.fingerprint}")


def write_batches(points: Iterable[Point]) -> Iterator[list[Point]]:
    """Cut points into what one call that writes takes: few enough points, and not too many token vectors."""
    portion: list[Point] = []
    rows = 0
    for point in points:
        portion.append(point)
        rows += count_token_rows(point)
        if len(portion) == POINT_BATCH_SIZE or rows >= MAX_BATCH_ROWS:
            yield portion
            portion, rows = [], 0
    if portion:
        yield portion


def count_token_rows(point: Point) -> int:
    """Count a point's token vectors."""
    return 0 if point.tokens is None else len(point.tokens)


def sort_by_score(found: Iterable[tuple[object, float]]) -> list[Scored]:
    """Order ids by score, the best first, equal ones by id."""
    scored = [Scored(str(memory_id), score) for memory_id, score in found]
    return sorted(scored, key=lambda one: (-one.score, one.memory_id))


def sort_by_cosine(found: Iterable[tuple[object, float]]) -> list[Scored]:
    """Order ids by cosine. Rounding beyond -1..1 is cut off."""
    return sort_by_score((memory_id, min(1.0, max(-1.0, score))) for memory_id, score in found)


async def fetch_nearest(fetch: Callable[[int], Awaitable[list[Scored]]], limit: int) -> list[Scored]:
    """Give the best `limit` of what `fetch` finds, equal ones by id.

    Engines keep any of those that tie at the cut, and the same short text said often ties with itself. So it asks for
    one more, and for still more as long as the last one ties with the last that is wanted.
    """
    if limit < 1:
        return []
    asked = limit + 1
    found = await fetch(asked)
    while len(found) >= asked and found[-1].score == found[limit - 1].score:
        asked *= WIDENING_FACTOR
        found = await fetch(asked)
    return found[:limit]
