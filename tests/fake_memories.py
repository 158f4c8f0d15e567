"""The records in a dict: what the table `memories` is in a worker."""

import asyncio
from collections.abc import Awaitable, Iterator
from typing import Any

from schemas.memories import Memory, Place


class FakeMemories:
    """`streams.flow.surroundings.KeptMemories` in memory. A partition sees its own alone, as its table shard does.

    What is kept is the record's JSON, so that nothing survives that a changelog would not carry. While `outage` is
    true, what is written is here and stays unsafe, as with a changelog that does not answer.
    """

    def __init__(self) -> None:
        self.outage = False
        self._kept: dict[int, dict[str, str]] = {}
        self._forgotten: dict[tuple[int, str], Place | None] = {}

    def get(self, partition: int, memory_id: str) -> Memory | None:
        """The record, or None."""
        value = self._kept.get(partition, {}).get(memory_id)
        return None if value is None else Memory.model_validate_json(value)

    def forget(self, partition: int, memory_id: str, place: Place | None = None) -> None:
        """Leave a mark in place of a record."""
        self._kept.get(partition, {}).pop(memory_id, None)
        self._forgotten[partition, memory_id] = place

    def forgotten_place(self, partition: int, memory_id: str) -> Place | None:
        """The place that was given to `forget`."""
        return self._forgotten.get((partition, memory_id))

    def is_forgotten(self, partition: int, memory_id: str) -> bool:
        """Whether a mark stands there."""
        return (partition, memory_id) in self._forgotten

    def put(self, partition: int, memory: Memory) -> None:
        """Write a record over the one before."""
        self._kept.setdefault(partition, {})[memory.memory_id] = memory.model_dump_json()

    def unwritten(self) -> list[Awaitable[Any]]:
        """Nothing where a dict is written at once; else what never ends."""
        return [asyncio.Event().wait()] if self.outage else []

    def all(self) -> Iterator[Memory]:
        """Every record."""
        return (Memory.model_validate_json(value) for kept in self._kept.values() for value in kept.values())
