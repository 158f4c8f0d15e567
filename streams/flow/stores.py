"""The stores of a worker, and their views of one partition.

`Stores.at(partition)` gives the views that agents are built with, so that no agent names a partition. A view stays
valid for the life of the process: after the partition has left, every call raises what the store raises.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from modestream_client.vocabulary import EmbeddingStatus

from agents.ports.indexes import LexicalWriter
from agents.ports.stores import (
    CategoryWriter,
    ClaimWriter,
    FileWriter,
    IntentionWriter,
    InteractionWriter,
    MemoryWriter,
    ModeWriter,
)
from agents.rules.index.columns import IntArray
from agents.rules.index.lexical_document import LexicalDocument
from agents.rules.index.memory_columns import MemoryColumns
from agents.rules.index.vocabulary import Postings
from agents.rules.memory.boundary_summary import CountedMemories
from schemas.messages.published import ReceiptRow
from schemas.scopes import ScopeFields
from schemas.state.categories import Taxonomy
from schemas.state.files import FileHolders, FileStatuses
from schemas.state.intention import Intention
from schemas.state.interaction import InteractionCounts
from schemas.state.memories import Claim, Memory, MemoryExcerpt, VectorLocation
from schemas.state.modes import ModeDeclarations

Key = TypeVar("Key")
Key_contra = TypeVar("Key_contra", contravariant=True)
Value = TypeVar("Value")


class Table(Protocol[Key_contra, Value]):
    """Values by partition and key. A write belongs to the handling of an event of that partition."""

    def get(self, partition: int, key: Key_contra, /) -> Value:
        """Return the value, or the default of the table."""

    def put(self, partition: int, key: Key_contra, value: Value, /) -> None:
        """Write a value."""

    def pending_writes(self) -> list[Awaitable[None]]:
        """Return the changelog writes since the last call; await them before the event is acknowledged.

        Call it before the next await after the writes: then they are those of one event.
        """


class ScopeStore(Table[ScopeFields, Value], Protocol):
    def scopes(self, partition: int, boundary: str) -> Sequence[ScopeFields]:
        """Return the scopes of a boundary that have a row."""


class ReceiptStore(Table[str, ReceiptRow], Protocol):
    def keys(self, partition: int, prefix: str) -> Sequence[str]:
        """Return the keys that begin so, in their order."""

    def delete(self, partition: int, key: str) -> None:
        """Delete a row."""


class InteractionStore(Protocol):
    """The table `interactions`: one value a partition."""

    def get(self, partition: int) -> InteractionCounts: ...
    def put(self, partition: int, counts: InteractionCounts) -> None: ...


class MemoryStore(Protocol):
    """The table `memories`. Its methods are those of `agents.ports.stores.MemoryWriter`, by partition."""

    def get(self, partition: int, memory_id: str) -> Memory | None: ...
    def excerpt(self, partition: int, memory_id: str) -> MemoryExcerpt | None: ...
    def put(self, partition: int, memory: Memory) -> None: ...
    def forget(self, partition: int, memory_id: str, place: VectorLocation | None = None) -> None: ...
    def remove(self, partition: int, memory_id: str, place: VectorLocation | None = None) -> None: ...
    def is_removed(self, partition: int, memory_id: str) -> bool: ...
    def is_forgotten(self, partition: int, memory_id: str) -> bool: ...
    def last_place(self, partition: int, memory_id: str) -> VectorLocation | None: ...

    def rows(self, partition: int) -> Iterator[bytes]:
        """Yield the records of a partition as they are stored."""

    def all(self) -> Iterator[Memory]:
        """Yield every record of the assigned partitions."""


class FileStore(Protocol):
    """The table `files`. Its methods are those of `agents.ports.stores.FileWriter`, by partition; the work to do."""

    due: asyncio.Event
    """Set by each write of a file that is to be read, or of bytes that are to be removed."""

    def holders(self, partition: int, boundary: str, sha256: str) -> FileHolders: ...
    def put_holders(self, partition: int, boundary: str, sha256: str, holders: FileHolders) -> None: ...
    def put_turn(self, partition: int, boundary: str, memory_id: str, statuses: FileStatuses) -> None: ...
    def remove_bytes(self, partition: int, key: str) -> None: ...
    def hashes(self, partition: int, boundary: str) -> list[str]: ...
    def has_turns(self, partition: int, boundary: str) -> bool: ...
    def turns(self, partition: int, boundary: str) -> dict[str, FileStatuses]: ...

    def pending(self, partition: int) -> dict[str, list[str]]:
        """Return the memories with files that are to be read, by boundary."""

    def removals(self, partition: int) -> list[str]:
        """Return the keys of bytes that are to be removed."""

    def removed(self, partition: int, key: str) -> None:
        """Note that bytes are removed."""


class LexicalStore(Protocol):
    """Lexical indexes by partition. Their methods are those of `agents.ports.indexes.LexicalWriter`.

    Every call is synchronous and belongs to one thread. A write is visible to every later call at once, and becomes
    durable with the rows of its partition. Raises `Unavailable` when storage fails; that call did nothing.
    """

    def open(self, partition: int) -> None:
        """Begin to serve a partition; an index of an older format, or a broken one, starts empty."""

    def is_open(self, partition: int) -> bool:
        """True if a partition is served, or kept as a copy."""

    def release(self, partition: int) -> None:
        """Close the index of a partition; what is not committed is lost."""

    def drop(self, partition: int) -> None:
        """Delete the index of a partition, open or not; a new one is not complete."""

    def is_complete(self, partition: int) -> bool:
        """True if an open index has the words of all rows of its partition."""

    def complete(self, partition: int) -> None:
        """Note that an open index has the words of all rows, and make it durable."""

    def close(self) -> None:
        """Commit and close all partitions."""

    def take_changed(self, partition: int) -> set[str]:
        """Return the index names with committed writes since the last call."""

    def put(self, partition: int, document: LexicalDocument) -> None: ...
    def remove(self, partition: int, memory_id: str) -> None: ...
    def has(self, partition: int, memory_id: str) -> bool: ...
    def memory_columns(self, partition: int, boundary: str) -> MemoryColumns: ...
    def postings(
        self, partition: int, boundary: str, terms: Sequence[str], *, fuzzy: bool = True
    ) -> list[Postings]: ...
    def entity_postings(self, partition: int, boundary: str, entities: Sequence[str]) -> list[Postings]: ...
    def category_postings(self, partition: int, boundary: str, names: Sequence[str]) -> list[Postings]: ...
    def counts(
        self, partition: int, boundary: str, projects: Collection[str] | None = None
    ) -> Mapping[str, Mapping[EmbeddingStatus, int]]: ...
    def numbers_with_status(self, partition: int, boundary: str, status: EmbeddingStatus) -> IntArray: ...

    def numbers_containing(self, partition: int, boundary: str, fragments: Sequence[str]) -> IntArray | None: ...
    def with_status(self, partition: int, statuses: Iterable[EmbeddingStatus]) -> Iterator[str]: ...
    def awaiting_understanding(self, partition: int) -> Iterator[str]: ...
    def ready_places(self, partition: int) -> Mapping[VectorLocation, int]: ...


class BoundaryCounts(Protocol):
    """Counts of boundaries in the lexical index, as last committed. Each call blocks, for a thread.

    Raises Unavailable where the index of the partition can't be read.
    """

    def names(self, partition: int, after: int, limit: int) -> Sequence[tuple[int, str]]:
        """Return at most `limit` index names with their numbers, in the order of these, beginning after one of them."""

    def read(self, partition: int, boundaries: Sequence[str]) -> Mapping[str, CountedMemories]:
        """Count the memories of each boundary that nothing supersedes."""

    def statuses(self, partition: int) -> Mapping[str, int]:
        """Count the memories of a partition that nothing supersedes by the states of their vectors, items included."""


class ObservedTable(Generic[Key, Value]):
    """A `Table` over another one, which tells of its writes: `on_put` gets partition and key after each."""

    def __init__(self, table: Table[Key, Value], on_put: Callable[[int, Key], None]) -> None:
        self._table = table
        self._on_put = on_put

    def get(self, partition: int, key: Key) -> Value:
        return self._table.get(partition, key)

    def put(self, partition: int, key: Key, value: Value) -> None:
        self._table.put(partition, key, value)
        self._on_put(partition, key)

    def pending_writes(self) -> list[Awaitable[None]]:
        return self._table.pending_writes()


@dataclass(frozen=True, slots=True)
class PartitionStores:
    """The stores of one partition, in the form of the agents' ports."""

    memories: MemoryWriter
    modes: ModeWriter
    claims: ClaimWriter
    intentions: IntentionWriter
    categories: CategoryWriter
    interactions: InteractionWriter
    files: FileWriter
    words: LexicalWriter


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of all partitions that agents read and write."""

    memories: MemoryStore
    modes: Table[str, ModeDeclarations]
    claims: Table[str, Claim]
    intentions: ScopeStore[Intention]
    categories: ScopeStore[Taxonomy]
    interactions: InteractionStore
    files: FileStore
    words: LexicalStore

    def at(self, partition: int) -> PartitionStores:
        """Return the views of one partition."""
        return PartitionStores(
            memories=at_partition(self.memories, partition),
            modes=at_partition(self.modes, partition),
            claims=at_partition(self.claims, partition),
            intentions=at_partition(self.intentions, partition),
            categories=at_partition(self.categories, partition),
            interactions=at_partition(self.interactions, partition),
            files=at_partition(self.files, partition),
            words=at_partition(self.words, partition),
        )

    def command_writes(self) -> list[Awaitable[object]]:
        """Return the pending writes of the tables that commands write."""
        return [*self.modes.pending_writes(), *self.intentions.pending_writes(), *self.categories.pending_writes()]


def at_partition(store: object, partition: int) -> Any:
    """Return a view of a store without the first argument of its methods, as the agents' ports have them."""
    return _PartitionView(store, partition)


class _PartitionView:
    """Binds a method at its first use and keeps it as an attribute: a call costs as much as one of the store itself."""

    def __init__(self, store: object, partition: int) -> None:
        self._store, self._partition = store, partition

    def __getattr__(self, name: str) -> Any:
        bound = partial(getattr(self._store, name), self._partition)
        setattr(self, name, bound)
        return bound
