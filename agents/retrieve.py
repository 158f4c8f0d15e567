"""A question in, the memories that answer it out: hybrid over vectors and words, of one boundary alone.

Every memory that the selector admits in the searched modes is ranked; what has no vector yet is found by its words
and its neighbours. Without vectors the answer is lexical, and says why. Several vector spaces are fused by rank, or
merged without any vectors; a cosine is only ever compared with one of the same space. The same question over the
same memories gets the same answer.
"""

import time
from collections.abc import Callable, Sequence

from agents.hits import Hits, Record
from agents.mode_spaces import ModeSpaces
from agents.ports import Clock, Modes, VectorIndex
from agents.rules.answers import Caution, crossed, degraded, elsewhere
from agents.rules.fusion import Method, Nearest, method_of, strategy_of
from agents.rules.lanes import other_modes
from agents.rules.ranking import Weights
from agents.rules.searches import Search, search_of
from agents.vector_search import VectorSearch
from agents.word_clues import WordClues
from agents.word_port import WordIndex
from schemas.retrieval import RetrieveRequest, RetrieveResult

Warnings = list[Caution]
"""Codes and messages."""


class Retrieve:
    """Answers retrieve requests. Writes nothing; what it reads is reached through ports."""

    def __init__(
        self,
        words: WordIndex,
        record: Record,
        vectors: VectorIndex,
        modes: Modes,
        spaces: ModeSpaces,
        clock: Clock,
        weights: Weights,
        elapsed: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Take the ports. `record` reads by partition and memory id; `elapsed` counts seconds."""
        self._words = words
        self._record = record
        self._modes = modes
        self._clock = clock
        self._vectors = VectorSearch(vectors, spaces)
        self._hits = Hits(record, weights)
        self._elapsed = elapsed

    async def answer(self, request: RetrieveRequest, partition: int) -> tuple[RetrieveResult, Warnings]:
        """Give the result and the warnings. Raises Rejected for a mode that is not declared, and for none."""
        started = self._elapsed()
        search = self._search(request, partition)
        words = WordClues(self._words, self._clock, search)
        nearest = await self._vectors.nearest(search, words)
        # Others may have written meanwhile: from here on all is read anew, and nothing awaited.
        sights = [one.sight for one in nearest]
        method = method_of(sights)
        hits, candidates = self._hits.best(search, words, nearest, method)
        warnings = self._warnings(search, nearest, method)
        took_ms = round(1000 * (self._elapsed() - started), 2)
        result = RetrieveResult(
            hits=hits,
            modes=search.modes,
            strategy=strategy_of(sights),
            diagnostics={"candidates": candidates, "took_ms": took_ms, "method": method},
        )
        return result, warnings

    def _search(self, request: RetrieveRequest, partition: int) -> Search:
        boundary = request.scope.boundary
        declared, roster = self._modes.get(partition, boundary), self._words.roster(partition, boundary)

        def mode_of(memory_id: str) -> str | None:
            memory = self._record(partition, memory_id)
            return None if memory is None else memory.mode

        return search_of(request, partition, declared, roster, mode_of)

    def _warnings(self, search: Search, nearest: Sequence[Nearest], method: Method) -> Warnings:
        several = len(nearest) > 1
        reasons = [(one.lane.mode.name, one.missing) for one in nearest if one.missing is not None]
        warnings = [crossed(search.modes, method)] if several else []
        warnings += degraded(reasons, cross_mode=several)
        if search.request.mode is None:
            roster = self._words.roster(search.partition, search.where.boundary)
            superseded = search.request.include_superseded
            warnings += elsewhere(other_modes(roster, search.where, include_superseded=superseded))
        return warnings
