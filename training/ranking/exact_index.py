"""An exact in-memory vector index of one space, for training."""

from collections.abc import Callable, Mapping, Sequence
from typing import Never

import numpy as np

from agents.ports.vector_index import PlannedSearch, VectorReads
from schemas.models.vectors import Encoded, Matrix, MemoryFilter, Point, Scored, Vector
from schemas.state.modes import Fingerprint, VectorSpace

DIGITS = 7
"""Decimals of a score, as many as single precision has."""


class ExactIndex:
    """Implements the searches of `agents.ports.vector_index.VectorIndex` over fixed points of one boundary."""

    is_remote = False

    def __init__(self, points: Sequence[Point]) -> None:
        """Take all points, of one boundary and one space, with token vectors."""
        self._ids = [point.memory_id for point in points]
        self._place = {memory_id: place for place, memory_id in enumerate(self._ids)}
        self._vectors = np.array([point.vector for point in points])
        tokens = [point.tokens for point in points if point.tokens is not None]
        self._tokens = np.concatenate(tokens)
        self._starts = np.cumsum([0, *map(len, tokens)])[:-1]

    async def read_ahead(self, searches: Sequence[PlannedSearch]) -> VectorReads:
        """Return itself: a read is a function call."""
        del searches
        return self

    async def search(self, space: VectorSpace, vector: Vector, where: MemoryFilter, limit: int) -> list[Scored]:
        """Return the nearest by cosine."""
        del space, where  # There is only one of each.
        return self._best(np.arange(len(self._ids)), self._vectors @ vector, limit)

    async def maxsim(
        self,
        space: VectorSpace,
        question: Matrix,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> list[Scored]:
        """Return the best by late interaction, among all or these memories."""
        del space, where
        sums = np.maximum.reduceat(self._tokens @ question.T, self._starts, axis=0).sum(axis=1)
        candidates = self._ids if memory_ids is None else memory_ids
        places = np.array([self._place[one] for one in candidates], np.int64)
        return self._best(places, sums[places], limit)

    def _best(self, places: "np.ndarray[tuple[int], np.dtype[np.int64]]", scores: Vector, limit: int) -> list[Scored]:
        found = zip([self._ids[place] for place in places], np.round(scores, DIGITS).tolist(), strict=True)
        return [Scored(*one) for one in sorted(found, key=lambda one: (-one[1], one[0]))[:limit]]

    async def upsert(self, space: VectorSpace, points: Sequence[Point]) -> Never:
        """Not needed in training, like all methods that follow."""
        raise NotImplementedError

    async def delete(self, space: VectorSpace, memory_ids: Sequence[str]) -> Never:
        """See `upsert`."""
        raise NotImplementedError

    async def hashes(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, str]:
        """See `upsert`."""
        raise NotImplementedError

    async def vectors(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Encoded]:
        """See `upsert`."""
        raise NotImplementedError

    async def pooled(self, space: VectorSpace, memory_ids: Sequence[str]) -> Mapping[str, Vector]:
        """See `upsert`."""
        raise NotImplementedError

    async def count(self, space: VectorSpace, partition: int) -> int:
        """See `upsert`."""
        raise NotImplementedError

    async def spaces(self) -> Mapping[str, Fingerprint]:
        """See `upsert`."""
        raise NotImplementedError

    def problem(self) -> str | None:
        """See `upsert`."""
        raise NotImplementedError

    def set_aside(self) -> Sequence[str]:
        """See `upsert`."""
        raise NotImplementedError

    def watch_losses(self, on_lost: Callable[[], object]) -> None:
        """See `upsert`."""
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing to release."""
