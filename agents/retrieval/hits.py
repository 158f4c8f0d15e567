"""The best memories of a search as hits. Awaits nothing, so an answer is of one moment."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from agents.retrieval.hit_details import HitInsides, Record
from agents.retrieval.lexical_features import WordClues
from agents.rules.answer.hits import hit_of
from agents.rules.answer.term_coverage import Sought
from agents.rules.index.columns import Floats, Mask
from agents.rules.index.memory_columns import Roster
from agents.rules.query.plans import Search, admitted_by
from agents.rules.ranking.explanation import Explanation
from agents.rules.ranking.query_features import Clues
from agents.rules.ranking.rank_fusion import TOPIC_CANDIDATES, Method, Nearest, seen, topic_share
from agents.rules.ranking.ranking import Ranking, Weights, ranked
from agents.rules.text.tokenizer import telling_terms
from schemas.retrieval import Hit

__all__ = ["Hits", "Record"]


class Hits:
    """Ranks every memory that a search admits, and reads the records of the best."""

    def __init__(self, record: Record, weights: Weights) -> None:
        self._record = record
        self._weights = weights

    def best(
        self, search: Search, words: WordClues, nearest: Sequence[Nearest], method: Method, *, bare: bool = False
    ) -> tuple[list[Hit], int]:
        """The best memories, best first, and among how many they were chosen; `bare`: without what stands inside."""
        roster = words.roster()
        clues, admitted = self.clues(search, words, nearest, method)
        heads = self._weights.heads
        ranking = ranked(clues, admitted, heads[clues.head], by_words=heads["words"])
        if method == "lexical_merge":
            ranking = ranking.with_topics(self._topics(search, roster, ranking))
        insides = None if bare else self._insides(search, clues, roster)
        return self._hits(search, roster, clues, ranking, insides), int(admitted.sum())

    def clues(self, search: Search, words: WordClues, nearest: Sequence[Nearest], method: Method) -> tuple[Clues, Mask]:
        """What is known of every memory of the boundary, and which of them the search admits."""
        roster = words.roster()
        admitted = admitted_by(search, roster)
        clues = words.now()
        sight = seen(nearest, method, roster, admitted, clues.by_words["words"])
        return replace(clues, embedded=sight.embedded, dense=sight.dense, late=sight.late), admitted

    def _insides(self, search: Search, clues: Clues, roster: Roster) -> HitInsides:
        return HitInsides(self._record, search.request, search.partition, Sought.of(clues, roster, unheard=False))

    def _hits(
        self, search: Search, roster: Roster, clues: Clues, ranking: Ranking, insides: HitInsides | None
    ) -> list[Hit]:
        explanation = Explanation(clues, ranking) if search.request.explain else None
        hits, told = [], clues.by_words["words"]
        for place in ranking.best(search.request.top_k, roster.id_of):
            number = int(ranking.numbers[place])
            memory = self._record(search.partition, roster.id_of[number])
            if memory is not None:
                why = (explanation.scores(place), explanation.contributions(place)) if explanation else (None, None)
                hit = hit_of(memory, ranking.score(place), *why, shown_as=search.shown_as)
                hits.append(insides.within(hit, memory, speaks=bool(told[number])) if insides else hit)
        return hits

    def _topics(self, search: Search, roster: Roster, ranking: Ranking) -> Floats:
        """How much of its topic the question names, for the memories that are best so far."""
        topics = np.zeros(len(ranking.numbers))
        for place in ranking.best(TOPIC_CANDIDATES, roster.id_of):
            memory = self._record(search.partition, roster.id_of[int(ranking.numbers[place])])
            if memory is not None and memory.reading.topic:
                topics[place] = topic_share(search.question.terms, telling_terms(memory.reading.topic))
        return topics
