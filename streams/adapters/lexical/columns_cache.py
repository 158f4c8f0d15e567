"""An LRU cache of the columns and vocabularies of one open index."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import Trait
from agents.rules.index.vocabulary import Vocabulary

MAX_CACHED_MEMORIES = 50_000
"""Memories with cached columns in one partition: some 15 MB, and 8 MB for the vocabularies. Reading 5,000 again takes
about 20 ms."""


class MemoryColumnsCache:
    """Columns by boundary id; every write to the rows is applied here too."""

    def __init__(self, max_memories: int = MAX_CACHED_MEMORIES) -> None:
        self._max_memories = max_memories
        self._cached: OrderedDict[int, MemoryColumns] = OrderedDict()
        self._vocabularies: dict[int, Vocabulary] = {}
        self._memories = 0

    def get(self, boundary: int) -> MemoryColumns | None:
        """Return a boundary's columns if they are cached."""
        if boundary in self._cached:
            self._cached.move_to_end(boundary)
        return self._cached.get(boundary)

    def put(self, boundary: int, columns: MemoryColumns) -> None:
        """Cache a boundary's columns, of any size; evict others beyond the limit."""
        self._cached[boundary] = columns
        self._memories += columns.documents
        while self._memories > self._max_memories and len(self._cached) > 1:
            oldest, evicted = self._cached.popitem(last=False)
            self._memories -= evicted.documents
            self._vocabularies.pop(oldest, None)

    def written(self, boundary: int, row: MemoryRow, trait: Trait) -> None:
        """Apply a row that was written."""
        columns = self._cached.get(boundary)
        if columns is not None:
            before = columns.documents
            columns.write([row], {} if columns.has_trait(row.trait) else {row.trait: trait})
            self._memories += columns.documents - before

    def vocabulary(self, boundary: int, read: Callable[[int], Vocabulary]) -> Vocabulary:
        """Return a boundary's vocabulary, by `read` if it is not cached; cached as long as its columns."""
        known = self._vocabularies.get(boundary)
        if known is None:
            known = read(boundary)
            if boundary in self._cached:
                self._vocabularies[boundary] = known
        return known

    def add_terms(self, boundary: int, terms: Sequence[str]) -> None:
        """Apply terms that were written."""
        known = self._vocabularies.get(boundary)
        if known is not None:
            known.add(terms)

    def drop_vocabulary(self, boundary: int) -> None:
        """Drop a vocabulary, after terms were removed."""
        self._vocabularies.pop(boundary, None)

    def drop(self, boundary: int) -> None:
        """Drop a boundary, after a memory was removed."""
        self._vocabularies.pop(boundary, None)
        columns = self._cached.pop(boundary, None)
        self._memories -= columns.documents if columns else 0

    def clear(self) -> None:
        """Drop everything, after a rollback."""
        self._cached.clear()
        self._vocabularies.clear()
        self._memories = 0
