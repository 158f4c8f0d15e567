"""Views of tables and lexical index that are bound to one partition; they implement the ports of the agents."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic

from agents.rules.index.bm25 import Postings
from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.index.memory_columns import MemoryColumns
from schemas.state.intention import Intention
from schemas.state.memories import EmbeddingStatus, Memory, VectorLocation
from streams.flow.stores.tables import IntentionStore, Key_contra, LexicalStore, MemoryStore, ScopeFields, Table, Value


class TableView(Generic[Key_contra, Value]):
    """One partition of a table."""

    def __init__(self, table: Table[Key_contra, Value], partition: int) -> None:
        self._table, self._partition = table, partition

    def get(self, key: Key_contra) -> Value:
        """Return the value of a key."""
        return self._table.get(self._partition, key)

    def put(self, key: Key_contra, value: Value) -> None:
        """Write a value."""
        self._table.put(self._partition, key, value)


class IntentionView(TableView[ScopeFields, Intention]):
    """One partition of the table `intentions`. Implements `agents.ports.intentions.IntentionWriter`."""

    def __init__(self, table: IntentionStore, partition: int) -> None:
        super().__init__(table, partition)
        self._intentions = table

    def scopes(self, boundary: str) -> Sequence[ScopeFields]:
        """Return the scopes of a boundary that have an intention."""
        return self._intentions.scopes(self._partition, boundary)


class MemoryView:
    """One partition of the table `memories`. Implements `agents.ports.stores.MemoryWriter`."""

    def __init__(self, table: MemoryStore, partition: int) -> None:
        self._table, self._partition = table, partition

    def get(self, memory_id: str) -> Memory | None:
        """Return the record, or None."""
        return self._table.get(self._partition, memory_id)

    def put(self, memory: Memory) -> None:
        """Write a record."""
        self._table.put(self._partition, memory)

    def forget(self, memory_id: str, place: VectorLocation | None = None) -> None:
        """Replace a record by a permanent tombstone."""
        self._table.forget(self._partition, memory_id, place)

    def remove(self, memory_id: str, place: VectorLocation | None = None) -> None:
        """Replace a record by a tombstone."""
        self._table.remove(self._partition, memory_id, place)

    def is_removed(self, memory_id: str) -> bool:
        """True if a tombstone is there."""
        return self._table.is_removed(self._partition, memory_id)

    def is_forgotten(self, memory_id: str) -> bool:
        """True if a permanent tombstone is there."""
        return self._table.is_forgotten(self._partition, memory_id)

    def removed(self) -> Iterator[str | None]:
        """Yield the ids of tombstones that are not permanent; None for other rows."""
        return self._table.removed(self._partition)

    def last_place(self, memory_id: str) -> VectorLocation | None:
        """Return the vector location in the tombstone."""
        return self._table.last_place(self._partition, memory_id)


class LexicalView:
    """The lexical index of one partition. Implements `agents.ports.lexical_index.LexicalWriter`."""

    def __init__(self, index: LexicalStore, partition: int) -> None:
        self._index, self._partition = index, partition

    def put(self, document: LexicalDocument) -> None:
        """Index a memory."""
        self._index.put(self._partition, document)

    def remove(self, memory_id: str) -> None:
        """Remove a memory."""
        self._index.remove(self._partition, memory_id)

    def has(self, memory_id: str) -> bool:
        """True if the memory is indexed."""
        return self._index.has(self._partition, memory_id)

    def memory_columns(self, boundary: str) -> MemoryColumns:
        """Return the columns of a boundary."""
        return self._index.memory_columns(self._partition, boundary)

    def postings(self, boundary: str, terms: Sequence[str], *, fuzzy: bool = True) -> list[Postings]:
        """Return the postings of each term."""
        return self._index.postings(self._partition, boundary, terms, fuzzy=fuzzy)

    def entity_postings(self, boundary: str, entities: Sequence[str]) -> list[Postings]:
        """Return the postings of each entity."""
        return self._index.entity_postings(self._partition, boundary, entities)

    def category_postings(self, boundary: str, names: Sequence[str]) -> list[Postings]:
        """Return the postings of each category."""
        return self._index.category_postings(self._partition, boundary, names)

    def counts(self, boundary: str) -> Mapping[str, Mapping[EmbeddingStatus, int]]:
        """Count memories by mode and embedding status."""
        return self._index.counts(self._partition, boundary)

    def with_status(self, statuses: Iterable[EmbeddingStatus]) -> Iterator[str]:
        """Yield the ids of memories with one of these statuses."""
        return self._index.with_status(self._partition, statuses)

    def awaiting_understanding(self) -> Iterator[str]:
        """Yield the ids of memories that a language model has not read yet."""
        return self._index.awaiting_understanding(self._partition)

    def ready_places(self) -> Mapping[VectorLocation, int]:
        """Count the memories by vector location."""
        return self._index.ready_places(self._partition)
