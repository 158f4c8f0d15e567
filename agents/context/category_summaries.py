"""A question in, the summaries of the categories that it is about out, each as a memory that a context can show.

Guaranteed: a summary is shown only as far as what it rests on is there. Awaits nothing.
"""

from collections.abc import Callable
from functools import partial

from agents.ports.categories import Categories
from agents.ports.lexical_index import WordIndex
from agents.rules.answer.drill_down import Scope, scopes_read
from agents.rules.answer.sufficiency import matches
from agents.rules.answer.term_coverage import Sought
from agents.rules.categories.view import words_of
from agents.rules.context.capsules import capsule_of
from agents.rules.index.bm25 import idf
from agents.rules.index.memory_columns import Roster
from agents.rules.text.tokenizer import telling_terms
from schemas.categories import Category
from schemas.memories import Memory
from schemas.vectors import Where

MOST_SUMMARIES = 3
"""Summaries of a context: each takes up to 150 tokens, and is about the question by words alone."""


class CategoryCapsules:
    """Finds the summaries that help with a question."""

    def __init__(self, words: WordIndex, record: Callable[[int, str], Memory | None], categories: Categories) -> None:
        """Take the ports; `record` reads by partition and memory id."""
        self._words = words
        self._record = record
        self._categories = categories

    def about(self, query: str, partition: int, where: Where) -> dict[str, Memory]:
        """The capsules by their ids, best first."""
        roster = self._words.roster(partition, where.boundary)
        known = self._with_summary(partition, where, roster)
        if not known:
            return {}
        read = partial(self._record, partition)
        found = matches([words_of(one) for _, one in known], self._sought(query, partition, roster, where))
        capsules = (capsule_of(*known[one.place], where, read) for one in found[:MOST_SUMMARIES])
        return {one.memory_id: one for one in capsules if one is not None}

    def _with_summary(self, partition: int, where: Where, roster: Roster) -> list[tuple[Scope, Category]]:
        scopes = scopes_read(where, roster)
        known = [(scope, one) for scope in scopes for one in self._categories.get(partition, scope).all()]
        return [(scope, one) for scope, one in known if one.summary]

    def _sought(self, query: str, partition: int, roster: Roster, where: Where) -> Sought:
        terms = telling_terms(query)
        postings = self._words.postings(partition, where.boundary, terms)
        return Sought(terms, [idf(len(one.numbers), roster.documents) for one in postings], roster.languages())
