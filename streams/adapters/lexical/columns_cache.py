"""The columns and vocabularies of one partition's boundaries, cached by size: least recently read first out."""

from collections import OrderedDict
from collections.abc import Callable, Iterable

from agents.rules.index.memory_columns import MemoryColumns, MemoryRow, TimeHistory, Trait
from agents.rules.index.vocabulary import Vocabulary
from agents.rules.ranking.ranking import MAX_RERANKED

MAX_CACHED_BYTES = 32 * 1024 * 1024
"""Maximum cached columns and vocabularies of one partition: 90,000 memories of one boundary, or 4,600 boundaries of one
memory, which take 7 kB each. Reading 5,000 memories again takes about 20 ms."""

MIN_CACHED = 4
"""Boundaries that are cached at any size: the indexes of one user, which a list reads one after the other. Where each
evicted the one before, every page about more than 90,000 memories would read them all again."""

COLUMNS_BYTES, MEMORY_BYTES, VOCABULARY_BYTES, TERM_BYTES = 4_600, 300, 1_500, 70
"""Measured bytes of a boundary's columns without rows and of each memory in them, of a vocabulary without terms and of
each of its terms, with the objects around the arrays."""

FEATURE_BYTES = 260
"""Bytes of one memory in `QueryIndependentFeatures`, for at most `MAX_RERANKED` memories: 32 numbers."""

MAX_WRITTEN = 256
"""Rows of a boundary that wait to be applied to its columns."""

MAX_HISTORIES = 32
"""Boundaries whose times before edits are remembered while their columns are not cached: 5 MB at most."""


class MemoryColumnsCache:
    """Columns by boundary id, bounded in bytes; every write to the rows is applied here too."""

    def __init__(self, max_bytes: int = MAX_CACHED_BYTES, at_least: int = MIN_CACHED) -> None:
        self._max_bytes, self._at_least = max_bytes, at_least
        self._cached: OrderedDict[int, MemoryColumns] = OrderedDict()
        self._vocabularies: dict[int, Vocabulary] = {}
        self._sizes: dict[int, int] = {}
        self._bytes = 0
        self._changes = 0
        self._histories: OrderedDict[int, TimeHistory] = OrderedDict()
        self._written: dict[int, dict[int, tuple[MemoryRow, Trait]]] = {}
        """Rows by boundary and number that are not yet in the cached columns."""

    def get(self, boundary: int) -> MemoryColumns | None:
        """Return a boundary's columns, with every written row, if they are cached."""
        if boundary in self._cached:
            self._cached.move_to_end(boundary)
            self._apply_written(boundary)
        return self._cached.get(boundary)

    def put(self, boundary: int, columns: MemoryColumns) -> None:
        """Cache a boundary's columns, of any size; evict others beyond the limit."""
        self._cached[boundary] = columns
        self._resize(boundary)

    def written(self, boundary: int, row: MemoryRow, trait: Trait) -> None:
        """Apply a written row, batched with others until the columns are read: many rows take hardly longer."""
        if boundary in self._cached:
            rows = self._written.setdefault(boundary, {})
            rows[row.number] = row, trait
            if len(rows) >= MAX_WRITTEN:
                self._apply_written(boundary)
            self._resize(boundary)

    def vocabulary(self, boundary: int, read: Callable[[int], Vocabulary]) -> Vocabulary:
        """Return a boundary's vocabulary, by `read` if it is not cached; cached as long as its columns."""
        known = self._vocabularies.get(boundary)
        if known is None:
            known = read(boundary)
            if boundary in self._cached:
                self._vocabularies[boundary] = known
                self._resize(boundary)
        return known

    def add_terms(self, boundary: int, terms: Iterable[str]) -> None:
        known = self._vocabularies.get(boundary)
        if known is not None:
            known.add(terms)

    def drop_vocabulary(self, boundary: int) -> None:
        """Drop a vocabulary, after terms were removed."""
        self._vocabularies.pop(boundary, None)

    def history(self, boundary: int) -> TimeHistory:
        """Return the state of dropped columns that their next reading needs."""
        return self._histories.get(boundary, TimeHistory())._replace(changes=self._changes)

    def drop(self, boundary: int) -> None:
        """Drop a boundary, after a memory was removed."""
        self._apply_written(boundary)
        self._vocabularies.pop(boundary, None)
        if (columns := self._cached.pop(boundary, None)) is not None:
            self._remember(boundary, columns.history)
        self._bytes -= self._sizes.pop(boundary, 0)

    def clear(self) -> None:
        """Drop everything, after a rollback."""
        for boundary in list(self._written):
            self._apply_written(boundary)
        for boundary, columns in self._cached.items():
            self._remember(boundary, columns.history)
        self._cached.clear()
        self._vocabularies.clear()
        self._sizes.clear()
        self._bytes = 0

    def _apply_written(self, boundary: int) -> None:
        rows = self._written.pop(boundary, None)
        if not rows:
            return
        columns = self._cached[boundary]
        traits = {row.trait: trait for row, trait in rows.values() if not columns.has_trait(row.trait)}
        columns.write([row for row, _ in rows.values()], traits)

    def _remember(self, boundary: int, history: TimeHistory) -> None:
        # Over all boundaries: later writes to each of them must have a larger number.
        self._changes = max(self._changes, history.changes)
        if history.moved:
            self._histories[boundary] = history
            self._histories.move_to_end(boundary)
        while len(self._histories) > MAX_HISTORIES:
            self._histories.popitem(last=False)

    def _resize(self, boundary: int) -> None:
        """Count a boundary's size again, and evict the least recently read boundaries."""
        columns, vocabulary = self._cached[boundary], self._vocabularies.get(boundary)
        size = COLUMNS_BYTES + (columns.documents + len(self._written.get(boundary, ()))) * MEMORY_BYTES
        size += columns.key_bytes + min(columns.documents, MAX_RERANKED) * FEATURE_BYTES
        size += 0 if vocabulary is None else VOCABULARY_BYTES + vocabulary.estimated_words * TERM_BYTES
        self._bytes += size - self._sizes.get(boundary, 0)
        self._sizes[boundary] = size
        while self._bytes > self._max_bytes and len(self._cached) > self._at_least:
            self.drop(next(iter(self._cached)))
