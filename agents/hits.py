"""The best memories of a search as hits. Awaits nothing, so an answer is of one moment."""

from collections.abc import Callable, Sequence

import numpy as np

from agents.ports import Clock
from agents.rules.answers import hit_of
from agents.rules.bm25 import bm25
from agents.rules.columns import Floats, Mask
from agents.rules.fusion import TOPIC_CANDIDATES, Method, Nearest, seen, topic_share, with_topics
from agents.rules.ranking import DAY_MS, HALF_LIFE_DAYS, Signals, Weights, beside, best, blend, recency, share
from agents.rules.roster import Roster
from agents.rules.searches import Search
from agents.rules.words import telling_terms
from agents.word_port import WordIndex
from schemas.memories import Memory
from schemas.retrieval import Hit

Record = Callable[[int, str], Memory | None]
"""Reads a record by partition and memory id."""


class Hits:
    """Ranks every memory that a search admits, and reads the records of the best."""

    def __init__(self, words: WordIndex, record: Record, clock: Clock, weights: Weights) -> None:
        self._words = words
        self._record = record
        self._clock = clock
        self._weights = weights

    def best(self, search: Search, nearest: Sequence[Nearest], method: Method) -> tuple[list[Hit], int]:
        """The best memories, best first, and among how many they were chosen."""
        request, roster = search.request, self._words.roster(search.partition, search.where.boundary)
        admitted = roster.admitted(search.where, include_superseded=request.include_superseded)
        dense, ready = seen(nearest, method, roster, admitted)
        signals = self._signals(search, roster, dense)
        scores = blend(signals, self._weights, ready)
        if method == "lexical_merge":
            scores = with_topics(scores, self._topics(search, roster, scores, admitted), self._weights.total)
        hits = []
        for number in best(scores, admitted, request.top_k, roster.id_of):
            memory = self._record(search.partition, roster.id_of[number])
            if memory is not None:
                hits.append(hit_of(memory, float(scores[number]), signals.of(number) if request.explain else None))
        return hits, int(admitted.sum())

    def _signals(self, search: Search, roster: Roster, dense: Floats) -> Signals:
        """All signals of all memories of the boundary."""
        columns, question, boundary = roster.columns, search.question, search.where.boundary
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

    def _topics(self, search: Search, roster: Roster, scores: Floats, admitted: Mask) -> Floats:
        """How much of its topic the question names, for the memories that are best so far."""
        topics = np.zeros(len(scores))
        for number in best(scores, admitted, TOPIC_CANDIDATES, roster.id_of):
            memory = self._record(search.partition, roster.id_of[number])
            if memory is not None and memory.reading.topic:
                topics[number] = topic_share(search.question.terms, telling_terms(memory.reading.topic))
        return topics
