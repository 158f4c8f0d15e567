"""The best memories of a search as hits. Awaits nothing, so an answer is of one moment."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from agents.ports import Clock
from agents.rules.answers import hit_of
from agents.rules.bm25 import bm25
from agents.rules.clues import Clues
from agents.rules.columns import Floats, Mask
from agents.rules.explaining import Explanation
from agents.rules.fusion import TOPIC_CANDIDATES, Method, Nearest, seen, topic_share
from agents.rules.ranking import Ranking, Weights, ranked
from agents.rules.recency import DAY_MS, HALF_LIFE_DAYS, recency
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
        roster = self._words.roster(search.partition, search.where.boundary)
        clues, admitted = self.clues(search, nearest, method)
        ranking = ranked(clues, admitted, self._weights.heads[clues.head])
        if method == "lexical_merge":
            ranking = ranking.with_topics(self._topics(search, roster, ranking))
        return self._hits(search, roster, clues, ranking), int(admitted.sum())

    def clues(self, search: Search, nearest: Sequence[Nearest], method: Method) -> tuple[Clues, Mask]:
        """What is known of every memory of the boundary, and which of them the search admits."""
        roster = self._words.roster(search.partition, search.where.boundary)
        admitted = roster.admitted(search.where, include_superseded=search.request.include_superseded)
        clues = self._by_words(search, roster)
        told = bm25(clues.postings, roster.columns.lengths, roster.documents)
        sight = seen(nearest, method, roster, admitted, told)
        return replace(clues, embedded=sight.embedded, dense=sight.dense, late=sight.late), admitted

    def _hits(self, search: Search, roster: Roster, clues: Clues, ranking: Ranking) -> list[Hit]:
        explanation = Explanation(clues, ranking) if search.request.explain else None
        hits = []
        for place in ranking.best(search.request.top_k, roster.id_of):
            memory = self._record(search.partition, roster.id_of[int(ranking.numbers[place])])
            if memory is not None:
                why = (explanation.scores(place), explanation.contributions(place)) if explanation else (None, None)
                hits.append(hit_of(memory, ranking.score(place), *why))
        return hits

    def _by_words(self, search: Search, roster: Roster) -> Clues:
        """All that is known of the memories but how models see them."""
        columns, question, boundary = roster.columns, search.question, search.where.boundary
        ages_ms = self._clock.now().timestamp() * 1000 - columns.occurred_ms.astype(np.float64)
        return Clues(
            question=question,
            columns=columns,
            order=roster.order(),
            documents=roster.documents,
            postings=self._words.postings(search.partition, boundary, question.terms),
            entities=self._words.entity_postings(search.partition, boundary, question.entities),
            named=roster.spoken_by(question.named),
            embedded=np.zeros(len(columns.live), np.bool_),
            recency=recency(ages_ms, roster.of_kind(lambda kind: HALF_LIFE_DAYS[kind.decay] * DAY_MS)),
        )

    def _topics(self, search: Search, roster: Roster, ranking: Ranking) -> Floats:
        """How much of its topic the question names, for the memories that are best so far."""
        topics = np.zeros(len(ranking.numbers))
        for place in ranking.best(TOPIC_CANDIDATES, roster.id_of):
            memory = self._record(search.partition, roster.id_of[int(ranking.numbers[place])])
            if memory is not None and memory.reading.topic:
                topics[place] = topic_share(search.question.terms, telling_terms(memory.reading.topic))
        return topics
