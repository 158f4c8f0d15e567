"""Lexical features of the memories of one search, computed while the question is embedded.

A write to the boundary makes them outdated: they are computed again, so that an answer is a consistent snapshot.
"""

import numpy as np

from agents.ports.clock import Clock
from agents.ports.lexical_index import LexicalIndex
from agents.rules.index.columns import DAY_MS, HALF_LIFE_DAYS, recency
from agents.rules.index.memory_columns import MemoryColumns, filtered_reader
from agents.rules.query.plans import SearchPlan, search_mask
from agents.rules.ranking.features import PreparedFeatures, prepare_features
from agents.rules.ranking.query_features import QueryFeatures, lexical_fields
from agents.rules.ranking.ranking import MAX_RERANKED
from agents.rules.ranking.weights import LinearModel
from schemas.state.memories import ReadMemory


class LexicalFeatures:
    """All features of one search except vector scores."""

    def __init__(self, words: LexicalIndex, clock: Clock, search: SearchPlan, model: LinearModel | None = None) -> None:
        """`model` is the one by which memories with vectors will be ranked; None if nothing is to be prepared."""
        self._model = model
        self.prepared: PreparedFeatures | None = None
        """What ranking needs of the words."""
        self._words = words
        self._clock = clock
        self._search = search
        self._cached: tuple[MemoryColumns, int, QueryFeatures] | None = None
        self.include_superseded = search.request.include_superseded

    def memory_columns(self) -> MemoryColumns:
        """Return the boundary's current columns."""
        return self._words.memory_columns(self._search.where.boundary)

    def filtered_reader(self, read: ReadMemory) -> ReadMemory:
        """Return a reader of the memories that the search's filters admit."""
        return filtered_reader(read, self._words.memory_columns, self._search.where)

    def prepare(self) -> None:
        """Compute the features, and what ranking needs of them; of few memories, as others are selected by vectors."""
        features = self.now()
        if self._model is None:
            return
        numbers = np.flatnonzero(search_mask(self._search, self.memory_columns()))
        if len(numbers) <= MAX_RERANKED:
            self.prepared = prepare_features(features, numbers, self._model)

    def now(self) -> QueryFeatures:
        """Return the current features; cached until the next write to the boundary."""
        memory_columns = self.memory_columns()
        if self._cached is not None and self._cached[:2] == (memory_columns, memory_columns.changes):
            return self._cached[2]
        boundary = self._search.where.boundary
        columns, question, derived = memory_columns.columns, self._search.question, memory_columns.derived()
        postings = self._words.postings(boundary, question.terms)
        ages_ms = self._clock.now().timestamp() * 1000 - columns.occurred_ms.astype(np.float64)
        features = QueryFeatures(
            question=question,
            derived=derived,
            documents=memory_columns.documents,
            postings=postings,
            lexical=lexical_fields(derived, postings, memory_columns.documents),
            entities=self._words.entity_postings(boundary, question.entities),
            named=memory_columns.spoken_by(question.named),
            recency=recency(ages_ms, memory_columns.of_kind(lambda kind: HALF_LIFE_DAYS[kind.decay] * DAY_MS)),
            embedded=np.zeros(len(columns.live), np.bool_),
        )
        self._cached = memory_columns, memory_columns.changes, features
        return features
