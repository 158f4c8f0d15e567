"""The best memories of a search as hits. Awaits nothing, so an answer is of one moment."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from agents.rules.answers import hit_of
from agents.rules.clues import Clues
from agents.rules.columns import Floats, Mask
from agents.rules.explaining import Explanation
from agents.rules.fusion import TOPIC_CANDIDATES, Method, Nearest, seen, topic_share
from agents.rules.ranking import Ranking, Weights, ranked
from agents.rules.roster import Roster
from agents.rules.searches import Search
from agents.rules.words import telling_terms
from agents.word_clues import WordClues
from schemas.memories import Memory
from schemas.retrieval import Hit

Record = Callable[[int, str], Memory | None]
"""Reads a record by partition and memory id."""


class Hits:
    """Ranks every memory that a search admits, and reads the records of the best."""

    def __init__(self, record: Record, weights: Weights) -> None:
        self._record = record
        self._weights = weights

    def best(
        self, search: Search, words: WordClues, nearest: Sequence[Nearest], method: Method
    ) -> tuple[list[Hit], int]:
        """The best memories, best first, and among how many they were chosen."""
        roster = words.roster()
        clues, admitted = self.clues(search, words, nearest, method)
        ranking = ranked(clues, admitted, self._weights.heads[clues.head])
        if method == "lexical_merge":
            ranking = ranking.with_topics(self._topics(search, roster, ranking))
        return self._hits(search, roster, clues, ranking), int(admitted.sum())

    def clues(self, search: Search, words: WordClues, nearest: Sequence[Nearest], method: Method) -> tuple[Clues, Mask]:
        """What is known of every memory of the boundary, and which of them the search admits."""
        roster = words.roster()
        admitted = roster.admitted(search.where, include_superseded=search.request.include_superseded)
        clues = words.now()
        sight = seen(nearest, method, roster, admitted, clues.by_words["words"])
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

    def _topics(self, search: Search, roster: Roster, ranking: Ranking) -> Floats:
        """How much of its topic the question names, for the memories that are best so far."""
        topics = np.zeros(len(ranking.numbers))
        for place in ranking.best(TOPIC_CANDIDATES, roster.id_of):
            memory = self._record(search.partition, roster.id_of[int(ranking.numbers[place])])
            if memory is not None and memory.reading.topic:
                topics[place] = topic_share(search.question.terms, telling_terms(memory.reading.topic))
        return topics
