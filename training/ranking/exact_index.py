"""An exact in-memory vector index of one space, for training."""

from collections.abc import Callable, Mapping, Sequence
from typing import Never

import numpy as np

from agents.ports.indexes import PASSAGES_READ, PlannedSearch, VectorReads
from schemas.models.vectors import Encoded, Matrix, MemoryFilter, Nearest, Point, Scored, Vector
from schemas.state.modes import Fingerprint, VectorSpace
from streams.adapters.vectors.shared.vector_contract import ScoredText, best_memories

DIGITS = 7
"""Decimals of a score, as many as single precision has."""


class ExactIndex:
    """Implements the searches of `agents.ports.indexes.VectorIndex` over fixed points of one boundary."""

    is_remote = False

    def __init__(self, points: Sequence[Point]) -> None:
        """Take all points, of one boundary and one space, with token vectors."""
        self._ids = [point.memory_id for point in points]
        self._place = {memory_id: place for place, memory_id in enumerate(self._ids)}
        # Of a cut text the mean of its passages in its length: the product is the mean of their cosines.
        self._vectors = np.array(
            [point.vector if point.passages is None else point.passages.mean() for point in points]
        )
        tokens = [point.tokens for point in points if point.tokens is not None]
        self._tokens = np.concatenate(tokens)
        # A text is a passage, or the whole of a memory that is not cut.
        counts = [
            [len(one)] if point.passages is None else point.passages.token_counts.tolist()
            for point, one in zip(points, tokens, strict=True)
        ]
        self._token_counts = np.concatenate(counts)
        self._text_starts = np.cumsum([0, *map(len, counts)])
        self._passages = [None if point.passages is None else point.passages.pooled for point in points]

    async def read_ahead(self, searches: Sequence[PlannedSearch]) -> VectorReads:
        """Return itself: a read is a function call."""
        del searches
        return self

    async def search(
        self,
        space: VectorSpace,
        vector: Vector,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> list[Scored]:
        """Return the nearest by cosine, cut texts by the mean of those of their passages."""
        del space, where, memory_ids  # There is only one of each, and no question is filtered.
        return self._best(np.arange(len(self._ids)), self._vectors @ vector, limit)

    async def search_passages(
        self,
        space: VectorSpace,
        vector: Vector,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
    ) -> Nearest:
        """Return the cut texts with the nearest passages, among all or these memories."""
        del space, where
        hits = (
            ScoredText(memory_id, score, part)
            for memory_id in (self._ids if memory_ids is None else memory_ids)
            for part, score in enumerate(self._cosines(self._place[memory_id], vector))
        )
        return best_memories(hits, limit)

    async def maxsim(
        self,
        space: VectorSpace,
        question: Matrix,
        where: MemoryFilter,
        limit: int,
        memory_ids: Sequence[str] | None = None,
        pooled: Vector | None = None,
    ) -> Nearest:
        """Return the best by late interaction, among all or these memories."""
        del space, where
        has_tokens = self._token_counts > 0
        starts = (np.cumsum(self._token_counts) - self._token_counts)[has_tokens]
        sums = np.full(len(has_tokens), -np.inf, np.float32)
        sums[has_tokens] = np.maximum.reduceat(self._tokens @ question.T, starts, axis=0).sum(axis=1)
        scores = np.round(sums, DIGITS).tolist()
        candidates = self._ids if memory_ids is None else memory_ids
        return best_memories((hit for one in candidates for hit in self._late_hits(one, scores, pooled)), limit)

    def _late_hits(self, memory_id: str, scores: Sequence[float], pooled: Vector | None) -> list[ScoredText]:
        """Return the scored texts of a memory, given the score of every text, minus infinity without tokens."""
        place = self._place[memory_id]
        own = scores[self._text_starts[place] : self._text_starts[place + 1]]
        parts = [part for part, score in enumerate(own) if score > -np.inf]
        if self._passages[place] is None:
            return [ScoredText(memory_id, own[part]) for part in parts]
        if pooled is not None:
            cosines = self._cosines(place, pooled)
            parts = sorted(parts, key=lambda part: -cosines[part])[:PASSAGES_READ]
        return [ScoredText(memory_id, own[part], part) for part in parts]

    def _cosines(self, place: int, vector: Vector) -> list[float]:
        """Return the cosines of the passages of a memory; none if it is not cut."""
        pooled = self._passages[place]
        cosines: list[float] = [] if pooled is None else np.round(pooled @ vector, DIGITS).tolist()
        return cosines

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
