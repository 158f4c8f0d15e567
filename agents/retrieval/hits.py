"""The best memories of a search as hits. Awaits nothing, so an answer is of one moment."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from agents.ports.stores import Memories
from agents.retrieval.hit_details import HitDetails
from agents.retrieval.lexical_features import LexicalFeatures
from agents.rules.answer.hits import hit_of
from agents.rules.answer.term_coverage import TermCoverage
from agents.rules.index.columns import FloatArray, Mask
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.query.plans import SearchPlan, search_mask
from agents.rules.ranking.explanation import Explanation
from agents.rules.ranking.query_features import QueryFeatures
from agents.rules.ranking.rank_fusion import (
    MAX_TOPIC_CANDIDATES,
    FusionMethod,
    ModeSearchResult,
    fuse_vector_scores,
    topic_share,
)
from agents.rules.ranking.ranking import Ranking, rank_memories
from agents.rules.ranking.weights import RankingWeights
from agents.rules.text.tokenizer import content_terms
from schemas.retrieval import Hit


class HitRanker:
    """Ranks every memory that a search admits, and reads the records of the best."""

    def __init__(self, memories: Memories, weights: RankingWeights) -> None:
        self._memories = memories
        self._weights = weights

    def best(
        self,
        search: SearchPlan,
        words: LexicalFeatures,
        nearest: Sequence[ModeSearchResult],
        method: FusionMethod,
        *,
        bare: bool = False,
    ) -> tuple[list[Hit], int]:
        """The best memories, best first, and among how many they were chosen; `bare`: without what stands inside."""
        roster = words.memory_columns()
        clues, admitted = collect_query_features(search, words, nearest, method)
        heads = self._weights.models
        ranking = rank_memories(clues, admitted, heads[clues.variant], by_words=heads["words"])
        if method == "lexical_merge":
            ranking = ranking.with_topics(self._topics(search, roster, ranking))
        insides = None if bare else self._insides(search, clues, roster)
        return self._hits(search, roster, clues, ranking, insides), int(admitted.sum())

    def _insides(self, search: SearchPlan, clues: QueryFeatures, roster: MemoryColumns) -> HitDetails:
        return HitDetails(self._memories, search.request, TermCoverage.of(clues, roster, weigh_unknown=False))

    def _hits(
        self,
        search: SearchPlan,
        roster: MemoryColumns,
        clues: QueryFeatures,
        ranking: Ranking,
        insides: HitDetails | None,
    ) -> list[Hit]:
        explanation = Explanation(clues, ranking) if search.request.explain else None
        hits, told = [], clues.lexical["words"]
        for place in ranking.best(search.request.top_k, roster.id_of):
            number = int(ranking.numbers[place])
            memory = self._memories.get(roster.id_of[number])
            if memory is not None:
                why = (explanation.scores(place), explanation.contributions(place)) if explanation else (None, None)
                hit = hit_of(memory, ranking.score(place), *why, shown_as=search.shown_as)
                hits.append(insides.with_details(hit, memory, speaks=bool(told[number])) if insides else hit)
        return hits

    def _topics(self, search: SearchPlan, roster: MemoryColumns, ranking: Ranking) -> FloatArray:
        """How much of its topic the question names, for the memories that are best so far."""
        topics = np.zeros(len(ranking.numbers))
        for place in ranking.best(MAX_TOPIC_CANDIDATES, roster.id_of):
            memory = self._memories.get(roster.id_of[int(ranking.numbers[place])])
            if memory is not None and memory.reading.topic:
                topics[place] = topic_share(search.question.terms, content_terms(memory.reading.topic))
        return topics


def collect_query_features(
    search: SearchPlan, words: LexicalFeatures, nearest: Sequence[ModeSearchResult], method: FusionMethod
) -> tuple[QueryFeatures, Mask]:
    """Return the features of every memory of the index, vector scores included, and which ones the search admits."""
    memory_columns = words.memory_columns()
    admitted = search_mask(search, memory_columns)
    features = words.now()
    scores = fuse_vector_scores(nearest, method, memory_columns, admitted, features.lexical["words"])
    return replace(features, embedded=scores.embedded, dense=scores.dense, maxsim=scores.maxsim), admitted
