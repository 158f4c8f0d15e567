"""A vector index in memory: exact search in numpy, vectors and token vectors, and a switch that takes it away.

It implements `agents.ports.VectorIndex` and passes the same contract tests as the adapters.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas.failures import Unavailable
from schemas.models.vectors import Encoded, Matrix, MemoryFilter, Point, Scored, Vector
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.vectors.shared.vector_contract import (
    check_fingerprint,
    check_rows,
    check_vector,
    sort_by_cosine,
    sort_by_score,
    validate_ids,
    validate_points,
)


@dataclass
class Kept:
    """One collection."""

    fingerprint: Fingerprint
    points: dict[str, Point] = field(default_factory=dict)


class FakeIndex:
    """`VectorIndex` in memory. After `down` every call raises `Unavailable`, until `up`; what was written stays."""

    def __init__(self) -> None:
        """Start empty and up."""
        self._collections: dict[str, Kept] = {}
        self._is_down = False

    def down(self) -> None:
        """Make every call fail from now on."""
        self._is_down = True

    def up(self) -> None:
        """Answer again."""
        self._is_down = False

    async def upsert(self, space: VectorSpace, points: Sequence[Point]) -> None:
        """Write points; the same id again replaces."""
        self._points(space)
        if fresh := validate_points(space, points):
            kept = self._collections.setdefault(space.collection, Kept(space.fingerprint))
            kept.points |= {point.memory_id: point for point in fresh}

    async def delete(self, space: VectorSpace, memory_ids: Sequence[str]) -> None:
        """Remove points; unknown ids are ignored."""
        points = self._points(space)
        for memory_id in validate_ids(memory_ids):
            points.pop(memory_id, None)

    async def search(self, space: VectorSpace, vector: Vector, where: MemoryFilter, limit: int) -> list[Scored]:
        """The nearest points that `where` admits, best first, equal ones by id."""
        check_vector(space, vector)
        admitted = self._admitted(space, where, self._points(space))
        return sort_by_cosine((one.memory_id, cosine(vector, one.vector)) for one in admitted)[: max(0, limit)]

    async def maxsim(
        self,
        space: VectorSpace,
        question: Matrix,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> list[Scored]:
        """Late interaction over all that `where` admits, or over these memories as far as it admits them."""
        known = self._points(space) if memory_ids is None else validate_ids(memory_ids)
        check_rows(space, question)
        if not len(question):
            return []
        matched = [(one, one.tokens) for one in self._admitted(space, where, known) if one.tokens is not None]
        found = [(one.memory_id, max_sim(question, tokens)) for one, tokens in matched if len(tokens)]
        return sort_by_score(found)[: max(0, limit)]

    async def hashes(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, str]:
        """The content hash of each of these memories' points, for those that have one."""
        points = self._points(space)
        return {one: points[one].content_hash for one in validate_ids(memory_ids) if one in points}

    async def vectors(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Encoded]:
        """The vectors of these memories' points, the pooled ones of length 1 as a cosine index keeps them."""
        points = self._points(space)
        known = [points[one] for one in validate_ids(memory_ids) if one in points]
        return {one.memory_id: Encoded(unit(one.vector), rows_of(space, one)) for one in known}

    async def count(self, space: VectorSpace, partition: int) -> int:
        """How many points a partition has in this space."""
        return sum(point.partition == partition for point in self._points(space).values())

    async def spaces(self) -> Mapping[str, Fingerprint]:
        """The collections that exist, by name, with the fingerprint that is kept in each."""
        self._answer()
        return {name: kept.fingerprint for name, kept in self._collections.items()}

    async def close(self) -> None:
        """Nothing to release."""

    def _answer(self) -> None:
        if self._is_down:
            raise Unavailable("the vector index is switched off")

    def _points(self, space: VectorSpace) -> dict[str, Point]:
        self._answer()
        kept = self._collections.get(space.collection)
        if kept is None:
            return {}
        check_fingerprint(space, kept.fingerprint)
        return kept.points

    def _admitted(self, space: VectorSpace, where: MemoryFilter, memory_ids: Iterable[str]) -> list[Point]:
        points = self._points(space)
        return [points[one] for one in memory_ids if one in points and admits(where, points[one])]


def admits(where: MemoryFilter, point: Point) -> bool:
    """Tell whether a read may see a point."""
    words = [(point.scope.get(name), values) for name, values in where.scope.items()]
    words += [(point.mode, where.modes), (point.type, where.types)]
    return (
        point.boundary == where.boundary
        and all(values is None or word in values for word, values in words)
        and (where.since_ms is None or where.since_ms <= point.occurred_ms)
        and (where.until_ms is None or point.occurred_ms < where.until_ms)
    )


def cosine(left: Vector, right: Vector) -> float:
    """The cosine of the angle between two vectors, 0 where one has no direction."""
    lengths = float(np.linalg.norm(left) * np.linalg.norm(right))
    return float(np.dot(left, right)) / lengths if lengths else 0.0


def unit(vector: Vector) -> Vector:
    """The same direction with length 1; a vector without direction stays as it is."""
    length = np.linalg.norm(vector)
    return np.array(vector / length if length else vector, np.float32)


def max_sim(question: Matrix, tokens: Matrix) -> float:
    """The sum over the question's rows of the greatest dot product with a token."""
    return float((question @ tokens.T).max(axis=1).sum())


def rows_of(space: VectorSpace, point: Point) -> Matrix:
    """The token vectors of a point, no row where it has none."""
    none = np.empty((0, space.fingerprint.token_dim), np.float32)
    return none if point.tokens is None or not len(point.tokens) else point.tokens
