"""The tables `memories` and `modes`, of one partition. Agents that read them take the first protocol of each pair.

Writing belongs to one agent a table: only its package takes the writer. A write belongs to the handling of an event of
the partition, and replaces what was there.
"""

from collections.abc import Iterator
from typing import Protocol

from schemas.state.memories import Memory, MemoryExcerpt, VectorLocation
from schemas.state.modes import ModeDeclarations


class Memories(Protocol):
    """Reads records by memory id."""

    def get(self, memory_id: str) -> Memory | None:
        """Return the record, or None."""

    def excerpt(self, memory_id: str) -> MemoryExcerpt | None:
        """Return some fields of the record, or None: for answers about thousands of memories."""

    def is_removed(self, memory_id: str) -> bool:
        """True if a record of this id existed and was removed or forgotten."""

    def is_forgotten(self, memory_id: str) -> bool:
        """True if a record of this id existed and was forgotten."""

    def removed(self) -> Iterator[str | None]:
        """Yield the ids of removed records that were not forgotten; None for every other row, as a place to pause."""

    def last_place(self, memory_id: str) -> VectorLocation | None:
        """Return the vector location that was given to `forget` or `remove`."""


class MemoryWriter(Memories, Protocol):
    """Reads and writes records. For `agents.memory` alone."""

    def put(self, memory: Memory) -> None:
        """Write a record."""

    def forget(self, memory_id: str, place: VectorLocation | None = None) -> None:
        """Replace a record by a permanent tombstone; `place` is the last known location of its vector."""

    def remove(self, memory_id: str, place: VectorLocation | None = None) -> None:
        """Replace a record by a tombstone that a new record of the same id may overwrite."""


class Modes(Protocol):
    """Reads what each boundary has declared."""

    def get(self, boundary: str) -> ModeDeclarations:
        """Return the declarations; `general` alone for a boundary without any."""


class ModeWriter(Modes, Protocol):
    """Reads and writes declarations. For `agents.commands` alone."""

    def put(self, boundary: str, declared: ModeDeclarations) -> None:
        """Write the declarations of a boundary."""
