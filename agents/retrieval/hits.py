"""Rank the memories of a search and return the best as hits. Awaits nothing: an answer is a consistent snapshot."""

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
    """Searches in, hits out."""

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
        """Rank every memory that a search admits; return the best as hits, and the number of candidates.

        `bare`: hits without details.
        """
        memory_columns = words.memory_columns()
        features, admitted = collect_query_features(search, words, nearest, method)
        models = self._weights.models
        ranking = rank_memories(features, admitted, models[features.variant], by_words=models["words"])
        if method == "lexical_merge":
            ranking = ranking.with_topics(self._topics(search, memory_columns, ranking))
        details = None if bare else self._details(search, features, memory_columns)
        return self._hits(search, memory_columns, features, ranking, details), int(admitted.sum())

    def _details(self, search: SearchPlan, features: QueryFeatures, memory_columns: MemoryColumns) -> HitDetails:
        return HitDetails(
            self._memories, search.request, TermCoverage.of(features, memory_columns, weigh_unknown=False)
        )

    def _hits(
        self,
        search: SearchPlan,
        memory_columns: MemoryColumns,
        features: QueryFeatures,
        ranking: Ranking,
        details: HitDetails | None,
    ) -> list[Hit]:
        explanation = Explanation(features, ranking) if search.request.explain else None
        hits, lexical_scores = [], features.lexical["words"]
        for place in ranking.best(search.request.top_k, memory_columns.id_of):
            number = int(ranking.numbers[place])
            memory = self._memories.get(memory_columns.id_of[number])
            if memory is not None:
                why = (explanation.scores(place), explanation.contributions(place)) if explanation else (None, None)
                hit = hit_of(memory, ranking.score(place), *why, shown_as=search.shown_as)
                hits.append(
                    details.with_details(hit, memory, has_terms=bool(lexical_scores[number])) if details else hit
                )
        return hits

    def _topics(self, search: SearchPlan, memory_columns: MemoryColumns, ranking: Ranking) -> FloatArray:
        """Return, for the best memories so far, the share of their topic that the question names."""
        topics = np.zeros(len(ranking.numbers))
        for place in ranking.best(MAX_TOPIC_CANDIDATES, memory_columns.id_of):
            memory = self._memories.get(memory_columns.id_of[int(ranking.numbers[place])])
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
