"""The stores of a worker, and their views of one partition.

`Stores.at(partition)` gives the views that agents are built with, so that no agent names a partition. A view stays
valid for the life of the process: after the partition has left, every call raises what the store raises.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import structlog
from modestream_client.vocabulary import EmbeddingStatus

from agents.ports.clock import Clock
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
from schemas.failures import Unavailable
from schemas.messages.published import Rating, ReceiptRow
from schemas.messages.records import Record
from schemas.moments import moment_of, week_of
from schemas.scopes import ScopeFields
from schemas.state.categories import Taxonomy
from schemas.state.files import FileHolders, FileStatuses
from schemas.state.intention import Intention
from schemas.state.interaction import InteractionCounts
from schemas.state.memories import Claim, Memory, MemoryExcerpt, VectorLocation
from schemas.state.modes import ModeDeclarations, ModeUsage, UsageHistory
from streams.partition.commit import PartitionCommits

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
    """The stores of one partition, in the form of the agents' ports. Its fields have the names of those of `Stores`."""

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
        return PartitionStores(
            **{field.name: at_partition(getattr(self, field.name), partition) for field in fields(PartitionStores)}
        )

    def command_writes(self) -> list[Awaitable[object]]:
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


log = structlog.get_logger()

STORE_INTERVAL_S = 10.0
"""Between two writes of a user's row: a write costs more than the question that is counted."""

MAX_WAITING_USERS = 1000
"""Users with counts that are not stored yet, beyond which all are stored at once: some 10 MB."""


class UsageLog:
    """The table `usage`, how each user's modes are used by week, with what is counted and not stored yet.

    Guaranteed: a record is never counted twice, also one that is redelivered after a kill; a user has one row, bounded
    by `MAX_USAGE_WEEKS` and `MAX_USAGE_MODES`. The end of a worker loses the counts of at most `STORE_INTERVAL_S`.
    """

    def __init__(self, table: Table[str, UsageHistory], commit: PartitionCommits, clock: Clock) -> None:
        self._table = table
        self._commit = commit
        self._clock = clock
        self._waiting: dict[tuple[int, str], tuple[UsageHistory, UsageHistory]] = {}
        """By partition and user, the stored history and the current one."""
        self._is_full = asyncio.Event()

    def of(self, partition: int, boundary: str) -> UsageHistory:
        """Return a user's history, including what is not stored yet."""
        waiting = self._waiting.get((partition, boundary))
        return self._table.get(partition, boundary) if waiting is None else waiting[1]

    def asked(self, record: Record, boundary: str, modes: Sequence[str]) -> None:
        """Count a question that has searched these modes."""
        is_cross = int(len(modes) > 1)
        self._count(record, boundary, dict.fromkeys(modes, ModeUsage(questions=1, cross_mode_questions=is_cross)))

    def corrected(self, record: Record, boundary: str, memories: Mapping[str, int]) -> None:
        """Count memories that a command moves out of modes, by mode."""
        self._count(record, boundary, {mode: ModeUsage(corrections=moved) for mode, moved in memories.items()})

    def rated(self, record: Record, boundary: str, rating: Rating) -> None:
        """Count a rating, for each mode of its context."""
        usage = ModeUsage(useful=len(rating.useful), not_useful=len(rating.not_useful))
        modes = [rating.mode] if isinstance(rating.mode, str) else rating.mode or []
        self._count(record, boundary, dict.fromkeys(modes, usage))

    def forget(self, partition: int, boundary: str) -> None:
        """Delete a user's history; the write belongs to the handling of the command that forgets the user."""
        self._waiting.pop((partition, boundary), None)
        self._table.put(partition, boundary, UsageHistory())

    async def store(self, partitions: Iterable[int]) -> None:
        """Store what these partitions have counted; drop that of all others, which are another worker's."""
        self._is_full.clear()
        waiting, self._waiting = self._waiting, {}
        here = set(partitions)
        for (partition, boundary), (_, history) in waiting.items():
            if partition in here:
                self._table.put(partition, boundary, history)
        await self._commit.commit({partition for partition, _ in waiting} & here)

    async def run(self, served_partitions: Callable[[], Sequence[int]]) -> None:
        """Store every `STORE_INTERVAL_S`, until cancelled."""
        while True:
            try:
                async with asyncio.timeout(STORE_INTERVAL_S):
                    await self._is_full.wait()
            except TimeoutError:
                pass
            try:
                await self.store(served_partitions())
            except (KeyError, Unavailable) as problem:
                log.warning("usage of modes could not be stored", problem=repr(problem))

    def _count(self, record: Record, boundary: str, modes: Mapping[str, ModeUsage]) -> None:
        key = (record.partition, boundary)
        if not (waiting := self._waiting.get(key)):
            history = self._table.get(*key)
            waiting = history, history
        stored, current = waiting
        # Compared with the stored history: of questions that run at the same time the later one may end first.
        if modes and not stored.has(record.topic, record.offset):
            # By the record: commands that a migration copies are counted in their own weeks.
            week = week_of(min(self._clock.now(), moment_of(record.timestamp_ms)))
            self._waiting[key] = stored, current.with_record(record.topic, record.offset, week, modes)
            if len(self._waiting) > MAX_WAITING_USERS:
                self._is_full.set()
