"""Find the summaries of the categories that match a question, each in the form of a memory for a context.

A summary contains only what derives from existing memories. Capsules are made at one moment, of categories that were
read before, with pauses.
"""

from collections.abc import Iterable
from itertools import islice

from agents.context.pauses import Pauses
from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Categories, Memories
from agents.rules.answer.drill_down import select_scopes
from agents.rules.answer.term_coverage import TermCoverage, match_entries
from agents.rules.categories.taxonomy import ReadMemory, category_text
from agents.rules.context.section_candidates import capsule_of
from agents.rules.index.bm25 import idf
from agents.rules.text.tokenizer import content_terms
from schemas.models.vectors import MemoryFilter
from schemas.scopes import ScopeFields
from schemas.state.categories import Category
from schemas.state.memories import Memory

MAX_SUMMARIES = 3
"""Summaries in one context: each takes up to 150 tokens, and matches the question by words alone."""

MAX_MATCHED_CATEGORIES = 512
"""Categories that are compared with the question: two full scopes, some 25 ms."""

MAX_SHOWN_CATEGORIES = 50
"""Matching categories whose memories are read: those of others may be gone."""

ScopedCategory = tuple[ScopeFields, Category]


class CategorySummaries:
    """Questions in, capsules out."""

    def __init__(self, words: LexicalIndex, memories: Memories, categories: Categories) -> None:
        self._words = words
        self._memories = memories
        self._categories = categories

    async def matching(self, query: str, where: MemoryFilter, pauses: Pauses) -> list[ScopedCategory]:
        """Return the categories with summaries that match a question, best first; reads them with pauses."""
        scoped: list[ScopedCategory] = []
        for scope in select_scopes(where, self._words.memory_columns(where.boundary)):
            if len(scoped) >= MAX_MATCHED_CATEGORIES:
                break
            scoped += [(scope, category) for category in self._categories.get(scope).all() if category.summary]
            await pauses.pause_if_due()
        if not scoped:
            return []
        texts = [category_text(category) for _, category in scoped[:MAX_MATCHED_CATEGORIES]]
        matches = match_entries(texts, query_coverage(query, self._words, where.boundary))
        return [scoped[match.place] for match in matches[:MAX_SHOWN_CATEGORIES]]

    def capsules(self, matching: Iterable[ScopedCategory], where: MemoryFilter) -> dict[str, Memory]:
        """Return the capsules by their ids, in this order; of memories in the filter's modes alone."""
        read = self._reader(where)
        capsules = (capsule_of(scope, category, where, read) for scope, category in matching)
        shown = islice((capsule for capsule in capsules if capsule is not None), MAX_SUMMARIES)
        return {capsule.memory_id: capsule for capsule in shown}

    def _reader(self, where: MemoryFilter) -> ReadMemory:
        """Return a reader of the memories in the filter's modes: a summary shows nothing of other modes."""

        def read(memory_id: str) -> Memory | None:
            memory = self._memories.get(memory_id)
            return memory if memory and (where.modes is None or memory.mode in where.modes) else None

        return read


def query_coverage(query: str, words: LexicalIndex, boundary: str) -> TermCoverage:
    """Return the terms with their idf (`agents.rules.index.bm25.idf`)."""
    terms, memory_columns = content_terms(query), words.memory_columns(boundary)
    postings = words.postings(boundary, terms)
    weights = [idf(len(postings_of_term.numbers), memory_columns.documents) for postings_of_term in postings]
    return TermCoverage(terms, weights, memory_columns.languages())
