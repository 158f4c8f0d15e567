"""The rosters and vocabularies that are kept in memory between reads, the least recently read given up first."""

from collections import OrderedDict
from collections.abc import Callable, Sequence

from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import Trait
from agents.rules.index.vocabulary import Vocabulary

MAX_CACHED_MEMORIES = 50_000
"""Memories whose columns one partition keeps: some 15 MB, and 8 MB for their words.
Reading 5,000 again takes about 20 ms."""


class MemoryColumnsCache:
    """Rosters by boundary id, kept equal to the rows by those who write them."""

    def __init__(self, most_memories: int = MAX_CACHED_MEMORIES) -> None:
        self._most_memories = most_memories
        self._kept: OrderedDict[int, MemoryColumns] = OrderedDict()
        self._vocabularies: dict[int, Vocabulary] = {}
        self._memories = 0

    def get(self, boundary: int) -> MemoryColumns | None:
        """The roster, when it is kept."""
        if boundary in self._kept:
            self._kept.move_to_end(boundary)
        return self._kept.get(boundary)

    def keep(self, boundary: int, roster: MemoryColumns) -> None:
        """Keep a roster; always this one, however large."""
        self._kept[boundary] = roster
        self._memories += roster.documents
        while self._memories > self._most_memories and len(self._kept) > 1:
            oldest, given_up = self._kept.popitem(last=False)
            self._memories -= given_up.documents
            self._vocabularies.pop(oldest, None)

    def written(self, boundary: int, row: MemoryRow, trait: Trait) -> None:
        """Follow a row that was written."""
        roster = self._kept.get(boundary)
        if roster is not None:
            before = roster.documents
            roster.write([row], {} if roster.has_trait(row.trait) else {row.trait: trait})
            self._memories += roster.documents - before

    def vocabulary(self, boundary: int, read: Callable[[int], Vocabulary]) -> Vocabulary:
        """The words of a boundary, by `read` where they are not kept; kept as long as its roster is."""
        known = self._vocabularies.get(boundary)
        if known is None:
            known = read(boundary)
            if boundary in self._kept:
                self._vocabularies[boundary] = known
        return known

    def add_terms(self, boundary: int, words: Sequence[str]) -> None:
        """Follow words that were written."""
        known = self._vocabularies.get(boundary)
        if known is not None:
            known.add(words)

    def invalidate(self, boundary: int) -> None:
        """Keep this vocabulary no longer: words left it."""
        self._vocabularies.pop(boundary, None)

    def drop(self, boundary: int) -> None:
        """Keep this one no longer: something left it."""
        self._vocabularies.pop(boundary, None)
        roster = self._kept.pop(boundary, None)
        self._memories -= roster.documents if roster else 0

    def clear(self) -> None:
        """Keep none: what they followed was undone."""
        self._kept.clear()
        self._vocabularies.clear()
        self._memories = 0
