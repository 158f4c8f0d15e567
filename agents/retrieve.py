"""A question in, the memories that answer it out: hybrid over vectors and words, of one boundary alone.

Every memory that the selector admits is ranked; what has no vector yet is found by its words and its neighbours.
Without vectors the answer is lexical, and says why. The same question over the same memories gets the same answer.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from agents.ports import Clock, Embedder, VectorIndex
from agents.rules.answers import hit_of, where_of
from agents.rules.bm25 import bm25
from agents.rules.questions import Question, understood
from agents.rules.ranking import DAY_MS, HALF_LIFE_DAYS, Signals, Weights, beside, best, blend, placed, recency, share
from agents.rules.roster import Roster
from agents.word_port import WordIndex
from schemas.failures import Unavailable
from schemas.memories import Memory
from schemas.modes import GENERAL, VectorSpace
from schemas.retrieval import Hit, RetrieveRequest, RetrieveResult
from schemas.scopes import ANY
from schemas.vectors import Scored, Where

Warnings = list[tuple[str, str]]
"""Codes and messages."""

DENSE_LIMIT = 300
"""Nearest vectors that are asked for. On our chats as one user of 3,352 turns 100 find 2 points less at R@10, and
1,000 find no more."""


@dataclass(frozen=True, slots=True)
class _Search:
    """One request on its way: where it looks, with what, for what."""

    request: RetrieveRequest
    partition: int
    where: Where
    embedder: Embedder
    space: VectorSpace
    question: Question


@dataclass(frozen=True, slots=True)
class _Nearest:
    """What the vector index found, or why nothing."""

    found: Sequence[Scored]
    missing: str | None = None


class Retrieve:
    """Answers retrieve requests. Writes nothing; what it reads is reached through ports."""

    def __init__(
        self,
        words: WordIndex,
        record: Callable[[int, str], Memory | None],
        vectors: VectorIndex,
        embedder_of: Callable[[str], tuple[Embedder, VectorSpace]],
        clock: Clock,
        weights: Weights,
        elapsed: Callable[[], float] = time.perf_counter,
    ) -> None:
        """Take the ports.

        `record` reads by partition and memory id; `embedder_of` raises Rejected for a mode that it does not know;
        `elapsed` counts seconds.
        """
        self._words = words
        self._record = record
        self._vectors = vectors
        self._embedder_of = embedder_of
        self._clock = clock
        self._weights = weights
        self._elapsed = elapsed

    async def answer(self, request: RetrieveRequest, partition: int) -> tuple[RetrieveResult, Warnings]:
        """Give the result and the warnings. Raises Rejected for a mode that nobody declared."""
        started = self._elapsed()
        search = self._understood(request, partition)
        nearest = await self._nearest(search)
        # Others may have written meanwhile: from here on all is read anew, and nothing awaited.
        hits, candidates = self._ranked(search, nearest)
        took_ms = round(1000 * (self._elapsed() - started), 2)
        result = RetrieveResult(
            hits=hits,
            modes=[search.space.mode],
            strategy="hybrid" if nearest.missing is None else "lexical",
            diagnostics={"candidates": candidates, "took_ms": took_ms, "method": "weighted_mean"},
        )
        return result, [] if nearest.missing is None else [("degraded", nearest.missing)]

    def _understood(self, request: RetrieveRequest, partition: int) -> _Search:
        mode = self._mode(request)
        embedder, space = self._embedder_of(mode)
        where = where_of(request, mode)
        speakers = self._words.roster(partition, where.boundary).speakers
        return _Search(request, partition, where, embedder, space, understood(request.query, speakers))

    def _mode(self, request: RetrieveRequest) -> str:
        """The one mode that is searched: there is only `general` yet, so a list or `*` means it too."""
        asked = request.mode if isinstance(request.mode, list) else [request.mode or GENERAL]
        for name in asked:
            if name != ANY:
                self._embedder_of(name)
        return asked[0] if len(asked) == 1 and asked[0] != ANY else GENERAL

    async def _nearest(self, search: _Search) -> _Nearest:
        """Ask the vector index, where that can be of use."""
        roster = self._words.roster(search.partition, search.where.boundary)
        admitted = roster.admitted(search.where, include_superseded=search.request.include_superseded)
        if not admitted.any():
            return _Nearest(())
        if not (admitted & roster.embedded(search.space.fingerprint.digest)).any():
            return _Nearest((), "no vectors yet")
        try:
            encoded = await search.embedder.query(search.question.text)
            return _Nearest(await self._vectors.search(search.space, encoded.pooled, search.where, DENSE_LIMIT))
        except Unavailable as failure:
            return _Nearest((), str(failure))

    def _ranked(self, search: _Search, nearest: _Nearest) -> tuple[list[Hit], int]:
        """The best memories as hits, and among how many they were chosen."""
        request, roster = search.request, self._words.roster(search.partition, search.where.boundary)
        admitted = roster.admitted(search.where, include_superseded=request.include_superseded)
        signals = self._signals(search, roster, nearest)
        scores = blend(signals, self._weights, roster.embedded(search.space.fingerprint.digest))
        hits = []
        for number in best(scores, admitted, request.top_k, roster.id_of):
            memory = self._record(search.partition, roster.id_of[number])
            if memory is not None:
                hits.append(hit_of(memory, float(scores[number]), signals.of(number) if request.explain else None))
        return hits, int(admitted.sum())

    def _signals(self, search: _Search, roster: Roster, nearest: _Nearest) -> Signals:
        """All signals of all memories of the boundary."""
        columns, question, boundary = roster.columns, search.question, search.where.boundary
        # A vector that is not that of today's text counts for nothing.
        dense = placed(nearest.found, roster.number_of, roster.embedded(search.space.fingerprint.digest))
        postings = self._words.postings(search.partition, boundary, question.terms)
        lexical = bm25(postings, columns.lengths, roster.documents)
        before, after = roster.beside()
        ages_ms = self._clock.now().timestamp() * 1000 - columns.occurred_ms.astype(np.float64)
        named = self._words.entity_postings(search.partition, boundary, question.entities)
        return Signals(
            dense=dense,
            lexical=lexical,
            neighbours=(beside(dense, before, after) + beside(lexical, before, after)) / 2,
            recency=recency(ages_ms, roster.of_kind(lambda kind: HALF_LIFE_DAYS[kind.decay] * DAY_MS)),
            importance=columns.importance,
            entity=share(named, len(columns.live)),
            speaker=roster.spoken_by(question.named).astype(np.float64),
        )
