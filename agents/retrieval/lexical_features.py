"""What words tell of the memories of one search: counted while the question is embedded, and anew where it must be.

An answer is of one moment: what was counted stands as long as nobody writes to the boundary, and no longer.
"""

import numpy as np

from agents.ports.clock import Clock
from agents.ports.lexical_index import LexicalIndex
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.recency import DAY_MS, HALF_LIFE_DAYS, recency
from agents.rules.query.plans import SearchPlan
from agents.rules.ranking.field_scores import lexical_fields
from agents.rules.ranking.query_features import QueryFeatures


class LexicalFeatures:
    """The clues of one search without what models see."""

    def __init__(self, words: LexicalIndex, clock: Clock, search: SearchPlan) -> None:
        self._words = words
        self._clock = clock
        self._search = search
        self._counted: tuple[MemoryColumns, int, QueryFeatures] | None = None

    def memory_columns(self) -> MemoryColumns:
        """The memories of the boundary, as they are now."""
        return self._words.memory_columns(self._search.where.boundary)

    def now(self) -> QueryFeatures:
        """All that is known of the memories but how models see them, as they are now."""
        roster = self.memory_columns()
        if self._counted is not None and self._counted[:2] == (roster, roster.changes):
            return self._counted[2]
        clues = self._count(roster)
        self._counted = roster, roster.changes, clues
        return clues

    def _count(self, roster: MemoryColumns) -> QueryFeatures:
        boundary = self._search.where.boundary
        columns, question, order = roster.columns, self._search.question, roster.order()
        postings = self._words.postings(boundary, question.terms)
        ages_ms = self._clock.now().timestamp() * 1000 - columns.occurred_ms.astype(np.float64)
        return QueryFeatures(
            question=question,
            columns=columns,
            order=order,
            documents=roster.documents,
            postings=postings,
            lexical=lexical_fields(columns, postings, order, roster.documents),
            entities=self._words.entity_postings(boundary, question.entities),
            named=roster.spoken_by(question.named),
            recency=recency(ages_ms, roster.of_kind(lambda kind: HALF_LIFE_DAYS[kind.decay] * DAY_MS)),
            embedded=np.zeros(len(columns.live), np.bool_),
        )
