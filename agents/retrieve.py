"""A question in, the memories that answer it out: hybrid over vectors and words, of one boundary alone.

Every memory that the selector admits is ranked; what has no vector yet is found by its words and its neighbours.
Without vectors the answer is lexical, and says why. The same question over the same memories gets the same answer.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from agents.ports import Clock, Embedder, VectorIndex
from agents.rules.bm25 import bm25
from agents.rules.questions import Question, understood
from agents.rules.ranking import DAY_MS, HALF_LIFE_DAYS, Floats, Signals, Weights, beside, best, blend, recency, share
from agents.rules.roster import Mask, Roster
from agents.word_port import WordIndex
from schemas.failures import Unavailable
from schemas.memories import Evidence, Memory
from schemas.modes import GENERAL, VectorSpace
from schemas.moments import iso
from schemas.retrieval import Hit, RetrieveRequest, RetrieveResult, Scores, Strategy
from schemas.scopes import ANY
from schemas.vectors import Scored, Where

Warnings = list[tuple[str, str]]

DENSE_LIMIT = 300
"""Nearest vectors that are asked for. The evidence is among the first 150 for 97 of 100 questions."""


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
        self._words = words
        self._record = record
        self._vectors = vectors
        self._embedder_of = embedder_of
        self._clock = clock
        self._weights = weights
        self._elapsed = elapsed

    async def answer(self, request: RetrieveRequest, partition: int) -> tuple[RetrieveResult, Warnings]:
        """The result and the warnings, as code and message. Raises Rejected for a mode that nobody declared."""
        started = self._elapsed()
        mode = self._mode(request)
        embedder, space = self._embedder_of(mode)
        where = _where(request, mode)
        roster = self._words.roster(partition, where.boundary)
        question = understood(request.query, roster.speakers)
        admitted = roster.admitted(where, request.include_superseded)
        ready = admitted & roster.embedded(space.fingerprint.digest)
        nearest = await self._nearest(question, embedder, space, where, admitted, ready)
        # Others may have written meanwhile: from here on everything is read anew, without another await.
        roster = self._words.roster(partition, where.boundary)
        admitted = roster.admitted(where, request.include_superseded)
        signals = self._signals(roster, question, nearest, space, partition, where.boundary)
        scores = blend(signals, self._weights)
        chosen = best(scores, admitted, request.top_k, roster.id_of)
        explained = signals if request.explain else None
        hits = self._hits(partition, roster, chosen, scores, explained)
        took_ms = round(1000 * (self._elapsed() - started), 2)
        return _result(hits, mode, nearest, int(admitted.sum()), took_ms)

    def _mode(self, request: RetrieveRequest) -> str:
        """The one mode that is searched: there is only `general` yet, so a list or `*` means it too."""
        asked = request.mode if isinstance(request.mode, list) else [request.mode or GENERAL]
        for name in asked:
            if name != ANY:
                self._embedder_of(name)
        return asked[0] if len(asked) == 1 and asked[0] != ANY else GENERAL

    async def _nearest(
        self, question: Question, embedder: Embedder, space: VectorSpace, where: Where, admitted: Mask, ready: Mask
    ) -> _Nearest:
        """Ask the vector index, where that can be of use."""
        if not admitted.any():
            return _Nearest(())
        if not ready.any():
            return _Nearest((), "no vectors yet")
        try:
            encoded = await embedder.query(question.text)
            found = await self._vectors.search(space, encoded.pooled, where, DENSE_LIMIT)
        except Unavailable as failure:
            return _Nearest((), str(failure))
        return _Nearest(found)

    def _signals(
        self, roster: Roster, question: Question, nearest: _Nearest, space: VectorSpace, partition: int, boundary: str
    ) -> Signals:
        """All signals of all memories of the boundary."""
        columns = roster.columns
        dense = _dense(roster, nearest, roster.embedded(space.fingerprint.digest))
        lexical = bm25(
            self._words.postings(partition, boundary, question.terms), columns.lengths, roster.documents
        )
        named = self._words.entity_postings(partition, boundary, question.entities)
        before, after = roster.beside()
        ages_ms = self._clock.now().timestamp() * 1000 - columns.occurred_ms.astype(np.float64)
        return Signals(
            dense=dense,
            lexical=lexical,
            neighbours=(beside(dense, before, after) + beside(lexical, before, after)) / 2,
            recency=recency(ages_ms, roster.of_kind(lambda kind: HALF_LIFE_DAYS[kind.decay] * DAY_MS)),
            importance=columns.importance,
            entity=share(named, len(columns.live)),
            speaker=roster.spoken_by(question.named).astype(np.float64),
        )

    def _hits(
        self, partition: int, roster: Roster, chosen: Sequence[int], scores: Floats, explained: Signals | None
    ) -> list[Hit]:
        found = ((number, self._record(partition, roster.id_of[number])) for number in chosen)
        return [
            _hit(memory, float(scores[number]), explained.of(number) if explained else None)
            for number, memory in found
            if memory is not None
        ]


def _where(request: RetrieveRequest, mode: str) -> Where:
    """The request's filters as the indexes take them."""
    return Where(
        boundary=request.scope.boundary,
        scope=request.scope.fields(),
        modes=(mode,),
        types=None if request.types is None else tuple(request.types),
        since_ms=_milliseconds(request.since),
        until_ms=_milliseconds(request.until),
    )


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


def _dense(roster: Roster, nearest: _Nearest, ready: Mask) -> Floats:
    """The cosines by number; a vector that is not that of today's text counts for nothing."""
    nowhere = len(ready)
    dense = np.zeros(nowhere + 1)
    places = [roster.number_of.get(scored.memory_id, nowhere) for scored in nearest.found]
    dense[places] = [scored.cosine for scored in nearest.found]
    return np.clip(dense[:nowhere], 0.0, 1.0) * ready


def _hit(memory: Memory, score: float, scores: Scores | None) -> Hit:
    own = Evidence(turn_id=memory.turn_id, start=0, end=len(memory.text)) if memory.turn_id else None
    return Hit(
        memory_id=memory.memory_id,
        turn_id=memory.turn_id,
        conversation_id=memory.conversation_id,
        scope=memory.scope,
        type=memory.type,
        mode=memory.mode,
        mode_source=memory.mode_source,
        role=memory.role,
        speaker=memory.speaker,
        text=memory.text,
        occurred_at=iso(memory.occurred_at),
        score=score,
        scores=scores,
        evidence=memory.evidence or ((own,) if own else ()),
        version=memory.version,
        embedding_status=memory.embedding.status,
    )


def _result(
    hits: list[Hit], mode: str, nearest: _Nearest, candidates: int, took_ms: float
) -> tuple[RetrieveResult, Warnings]:
    strategy: Strategy = "hybrid" if nearest.missing is None else "lexical"
    result = RetrieveResult(
        hits=hits,
        modes=[mode],
        strategy=strategy,
        diagnostics={"candidates": candidates, "took_ms": took_ms, "method": "weighted_sum"},
    )
    return result, [] if nearest.missing is None else [("degraded", nearest.missing)]
