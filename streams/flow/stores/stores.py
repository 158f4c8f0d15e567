"""The stores of a worker, and their views of one partition.

`Stores.at(partition)` gives the views that agents are built with, so that no agent names a partition. A view stays
valid for the life of the process: after the partition has left, every call raises what the store raises.
"""

from collections.abc import Awaitable
from dataclasses import dataclass
from functools import partial
from typing import Any

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
from schemas.state.categories import Taxonomy
from schemas.state.intention import Intention
from schemas.state.memories import Claim
from schemas.state.modes import ModeDeclarations
from streams.flow.stores.tables import FileStore, InteractionStore, LexicalStore, MemoryStore, ScopeStore, Table


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
