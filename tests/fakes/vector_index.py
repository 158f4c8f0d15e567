"""A vector index in memory: exact search in numpy over vectors and token vectors, with an outage switch.

It implements `agents.ports.indexes.VectorIndex` and passes the same contract tests as the adapters.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from agents.ports.indexes import PASSAGES_READ, PlannedSearch, VectorReads
from schemas.failures import Unavailable
from schemas.models.vectors import Encoded, Matrix, MemoryFilter, Nearest, PassageVectors, Point, Scored, Vector
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.vectors.shared.vector_contract import (
    ScoredText,
    best_memories,
    check_fingerprint,
    check_rows,
    check_vector,
    sort_by_score,
    validate_ids,
    validate_points,
)


@dataclass
class FakeCollection:
    fingerprint: Fingerprint
    points: dict[str, Point] = field(default_factory=dict)


class FakeIndex:
    """`VectorIndex` in memory. After `down` every call raises `Unavailable`, until `up`; what was written stays."""

    is_remote = False

    def __init__(self) -> None:
        """Start empty and up."""
        self.collections: dict[str, FakeCollection] = {}
        self._is_down = False

    def down(self) -> None:
        self._is_down = True

    def up(self) -> None:
        self._is_down = False

    async def upsert(self, space: VectorSpace, points: Sequence[Point]) -> None:
        """Write points; an existing id is replaced."""
        self._points(space)
        if fresh := validate_points(space, points):
            collection = self.collections.setdefault(space.collection, FakeCollection(space.fingerprint))
            collection.points |= {point.memory_id: point for point in fresh}

    async def delete(self, space: VectorSpace, memory_ids: Sequence[str]) -> None:
        """Remove points; unknown ids are ignored."""
        points = self._points(space)
        for memory_id in validate_ids(memory_ids):
            points.pop(memory_id, None)

    async def read_ahead(self, searches: Sequence[PlannedSearch]) -> VectorReads:
        """Return itself: a read is a function call."""
        return self

    async def search(
        self,
        space: VectorSpace,
        vector: Vector,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> Sequence[Scored]:
        """Return the nearest points that match `where`, or these memories among them, best first, ties by id."""
        check_vector(space, vector)
        known = self._points(space) if memory_ids is None else validate_ids(memory_ids)
        admitted = self._admitted(space, where, known)
        return sort_by_score((memory.memory_id, whole_score(memory, vector)) for memory in admitted)[: max(0, limit)]

    async def search_passages(
        self,
        space: VectorSpace,
        vector: Vector,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> Nearest:
        """Return the cut texts that match `where`, or those of these memories among them, by their best passage."""
        check_vector(space, vector)
        known = self._points(space) if memory_ids is None else validate_ids(memory_ids)
        admitted = self._admitted(space, where, known)
        return best_memories((hit for point in admitted for hit in passage_hits(point, vector)), limit)

    async def maxsim(
        self,
        space: VectorSpace,
        question: Matrix,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
        pooled: Vector | None = None,
    ) -> Nearest:
        """Return MaxSim scores of the points that match `where`, or of these memories among them."""
        known = self._points(space) if memory_ids is None else validate_ids(memory_ids)
        check_rows(space, question)
        admitted = self._admitted(space, where, known) if len(question) else []
        return best_memories((hit for point in admitted for hit in late_hits(point, question, pooled)), limit)

    async def hashes(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, str]:
        points = self._points(space)
        return {
            memory_id: points[memory_id].content_hash for memory_id in validate_ids(memory_ids) if memory_id in points
        }

    async def vectors(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Encoded]:
        """Return the vectors of stored points; pooled ones have length 1, as in a cosine index."""
        points = self._points(space)
        known = [points[memory_id] for memory_id in validate_ids(memory_ids) if memory_id in points]
        return {
            memory.memory_id: Encoded(unit(memory.vector), rows_of(space, memory), passages=unit_passages(memory))
            for memory in known
        }

    async def pooled(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Vector]:
        return {memory_id: vector.pooled for memory_id, vector in (await self.vectors(space, memory_ids)).items()}

    async def count(self, space: VectorSpace, partition: int) -> int:
        return sum(point.partition == partition for point in self._points(space).values())

    async def spaces(self) -> Mapping[str, Fingerprint]:
        self._answer()
        return {name: collection.fingerprint for name, collection in self.collections.items()}

    def problem(self) -> str | None:
        """None: it has no parts."""
        return None

    def set_aside(self) -> Sequence[str]:
        """Nothing is ever damaged."""
        return ()

    def at(self, partition: int) -> "FakeIndex":
        """Return itself: it has all partitions."""
        return self

    async def release(self, partition: int) -> None:
        """Nothing to release."""

    def watch_losses(self, on_lost: Callable[[], object]) -> None:
        """Nothing is ever lost."""

    async def close(self) -> None:
        """Nothing to release."""

    def _answer(self) -> None:
        if self._is_down:
            raise Unavailable("the vector index is switched off")

    def _points(self, space: VectorSpace) -> dict[str, Point]:
        self._answer()
        collection = self.collections.get(space.collection)
        if collection is None:
            return {}
        check_fingerprint(space, collection.fingerprint)
        return collection.points

    def _admitted(self, space: VectorSpace, where: MemoryFilter, memory_ids: Iterable[str]) -> list[Point]:
        points = self._points(space)
        return [
            points[memory_id] for memory_id in memory_ids if memory_id in points and admits(where, points[memory_id])
        ]


def admits(where: MemoryFilter, point: Point) -> bool:
    words = [(point.scope.get(name), values) for name, values in where.scope.items()]
    words += [(point.mode, where.modes), (point.type, where.types)]
    return (
        point.boundary == where.boundary
        and all(values is None or word in values for word, values in words)
        and (where.since_ms is None or where.since_ms <= point.occurred_ms)
        and (where.until_ms is None or point.occurred_ms < where.until_ms)
    )


def cosine(left: Vector, right: Vector) -> float:
    lengths = float(np.linalg.norm(left) * np.linalg.norm(right))
    return min(1.0, max(-1.0, float(np.dot(left, right)) / lengths)) if lengths else 0.0


def unit(vector: Vector) -> Vector:
    """Return the vector scaled to length 1; a zero vector is unchanged."""
    length = np.linalg.norm(vector)
    return np.array(vector / length if length else vector, np.float32)


def max_sim(question: Matrix, tokens: Matrix) -> float:
    """Return the sum over the query's rows of the greatest dot product with a token."""
    return float((question @ tokens.T).max(axis=1).sum())


def passage_hits(point: Point, vector: Vector) -> list[ScoredText]:
    """Return the cosine of each passage of a point; none of a text that is not cut."""
    pooled = () if point.passages is None else point.passages.pooled
    return [ScoredText(point.memory_id, cosine(vector, each), part) for part, each in enumerate(pooled)]


def whole_score(point: Point, vector: Vector) -> float:
    """Return the cosine of a whole text, of a cut one the mean of its passages'."""
    hits = passage_hits(point, vector)
    return float(np.mean([hit.score for hit in hits])) if hits else cosine(vector, point.vector)


def late_hits(point: Point, question: Matrix, pooled: Vector | None) -> list[ScoredText]:
    """Return the MaxSim of each passage of a point that has tokens, or of the `PASSAGES_READ` nearest to `pooled`."""
    if point.tokens is None or not len(point.tokens):
        return []
    if point.passages is None:
        return [ScoredText(point.memory_id, max_sim(question, point.tokens))]
    tokens = np.split(point.tokens, np.cumsum(point.passages.token_counts)[:-1])
    chosen = [part for part, token in enumerate(tokens) if len(token)]
    if pooled is not None:
        cosines = [hit.score for hit in passage_hits(point, pooled)]
        chosen = sorted(chosen, key=lambda part: -cosines[part])[:PASSAGES_READ]
    return [ScoredText(point.memory_id, max_sim(question, tokens[part]), part) for part in chosen]


def unit_passages(point: Point) -> PassageVectors | None:
    if point.passages is None:
        return None
    return PassageVectors(np.array([unit(vector) for vector in point.passages.pooled]), point.passages.token_counts)


def rows_of(space: VectorSpace, point: Point) -> Matrix:
    """Return the token vectors of a point, empty if it has none."""
    none = np.empty((0, space.fingerprint.token_dim), np.float32)
    return none if point.tokens is None or not len(point.tokens) else point.tokens
