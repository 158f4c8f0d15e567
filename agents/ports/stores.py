"""The tables that most agents read: memories and declared modes. One agent writes each of them."""

from collections.abc import Iterator
from typing import Protocol

from schemas.memories import Memory, VectorLocation
from schemas.modes import ModeDeclarations


class Memories(Protocol):
    """The records, by partition and memory id: the table `memories`. `remember` alone writes."""

    def get(self, partition: int, memory_id: str) -> Memory | None:
        """The record, or None."""
        ...

    def put(self, partition: int, memory: Memory) -> None:
        """Write a record over the one before. Only while an event of that partition is being handled."""
        ...

    def forget(self, partition: int, memory_id: str, place: VectorLocation | None = None) -> None:
        """Leave a mark in place of a record, for good: `get` gives None, `is_forgotten` is true.

        `place` is where its last vector is known to lie.
        """
        ...

    def remove(self, partition: int, memory_id: str, place: VectorLocation | None = None) -> None:
        """Leave nothing of a record but where its last vector is known to lie: a record of this id may come again."""
        ...

    def is_removed(self, partition: int, memory_id: str) -> bool:
        """Whether a record of this id was here and is no more, removed or forgotten."""
        ...

    def removed(self, partition: int) -> Iterator[str | None]:
        """The ids of what was removed and not forgotten; None for everything else, so that one may pause at any."""
        ...

    def last_place(self, partition: int, memory_id: str) -> VectorLocation | None:
        """The place that was given to `forget` or `remove`."""
        ...

    def is_forgotten(self, partition: int, memory_id: str) -> bool:
        """Whether a record of this id was here and was forgotten."""
        ...


class Modes(Protocol):
    """What each boundary has declared: the table `modes`. `govern` alone writes."""

    def get(self, partition: int, boundary: str) -> ModeDeclarations:
        """What is declared; nothing but `general` for a boundary that never declared anything."""
        ...

    def put(self, partition: int, boundary: str, declared: ModeDeclarations) -> None:
        """Write what is declared over what was. Only while an event of that partition is being handled."""
        ...
