"""Find the summaries of the categories that match a question, each in the form of a memory for a context.

A summary contains only what derives from existing memories. Awaits nothing.
"""

from itertools import islice

from agents.context.query_coverage import query_coverage
from agents.ports.categories import Categories
from agents.ports.lexical_index import LexicalIndex
from agents.ports.stores import Memories
from agents.rules.answer.drill_down import select_scopes
from agents.rules.answer.term_coverage import match_entries
from agents.rules.categories.view import ReadMemory, category_text
from agents.rules.context.capsules import capsule_of
from agents.rules.index.memory_columns import MemoryColumns
from schemas.models.vectors import MemoryFilter
from schemas.scopes import ScopeFields
from schemas.state.categories import Category
from schemas.state.memories import Memory

MAX_SUMMARIES = 3
"""Summaries in one context: each takes up to 150 tokens, and matches the question by words alone."""


class CategorySummaries:
    """Questions in, capsules out."""

    def __init__(self, words: LexicalIndex, memories: Memories, categories: Categories) -> None:
        self._words = words
        self._memories = memories
        self._categories = categories

    def about(self, query: str, where: MemoryFilter) -> dict[str, Memory]:
        """Return the capsules by their ids, best first; of memories in the filter's modes alone."""
        memory_columns = self._words.memory_columns(where.boundary)
        known = self._with_summary(where, memory_columns)
        if not known:
            return {}
        found = match_entries(
            [category_text(one) for _, one in known], query_coverage(query, self._words, where.boundary)
        )
        capsules = (capsule_of(*known[one.place], where, self._reader(where)) for one in found)
        return {one.memory_id: one for one in islice((one for one in capsules if one is not None), MAX_SUMMARIES)}

    def _reader(self, where: MemoryFilter) -> ReadMemory:
        """Return a reader of the memories in the filter's modes: a summary shows nothing of other modes."""

        def read(memory_id: str) -> Memory | None:
            memory = self._memories.get(memory_id)
            return memory if memory and (where.modes is None or memory.mode in where.modes) else None

        return read

    def _with_summary(self, where: MemoryFilter, memory_columns: MemoryColumns) -> list[tuple[ScopeFields, Category]]:
        scopes = select_scopes(where, memory_columns)
        known = [(scope, one) for scope in scopes for one in self._categories.get(scope).all()]
        return [(scope, one) for scope, one in known if one.summary]
