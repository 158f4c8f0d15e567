"""The table `memories`: records as JSON under their ids, and a mark where one was forgotten or removed."""

from collections.abc import Awaitable, Iterator

import faust

from schemas.memories import Memory, VectorLocation
from streams.runtime.awaited_table import AwaitableTable, drain_pending_writes, iter_stored, read_stored
from streams.tables.parsed_values import ParsedValueCache

MAX_PARSED_MEMORIES = 2048
"""Records that are kept parsed: some 15 MB, at most 50. To parse one takes 36 us."""

MAX_PARSED_BYTES = 8192
"""Of a record that is kept parsed; that of a usual turn has 1,500."""

FORGOTTEN_TOMBSTONE = b"forgotten"
"""What a value begins with that stands in place of a forgotten record: kept for good, so that a replay does not bring
it back. The place of its vector follows, if it had one."""

REMOVED_TOMBSTONE = b"removed"
"""The same of a record that was removed, and may come again."""

TOMBSTONES = (FORGOTTEN_TOMBSTONE, REMOVED_TOMBSTONE)
"""What a value begins with that is no record any more."""


class MemoryTable:
    """Implements `streams.flow.worker_context.AwaitableMemories`. Writes belong to the handling of the partition's events."""

    def __init__(self, app: faust.App) -> None:
        self.table = AwaitableTable(app, name="memories", key_type=bytes, value_type=bytes)
        app.tables.add(self.table)
        self._parsed = ParsedValueCache(Memory.model_validate_json, MAX_PARSED_MEMORIES, MAX_PARSED_BYTES)

    def get(self, partition: int, memory_id: str) -> Memory | None:
        """The record, or None. Answers read the same ones again and again."""
        value = read_stored(self.table, partition, memory_id)
        return None if value is None or value.startswith(TOMBSTONES) else self._parsed[value]

    def put(self, _partition: int, memory: Memory) -> None:
        """Write a record over the one before."""
        self.table[memory.memory_id.encode()] = memory.model_dump_json().encode()

    def forget(self, _partition: int, memory_id: str, place: VectorLocation | None = None) -> None:
        """Leave a mark in place of a record."""
        self.table[memory_id.encode()] = FORGOTTEN_TOMBSTONE + _written(place)

    def remove(self, _partition: int, memory_id: str, place: VectorLocation | None = None) -> None:
        """Leave nothing of a record but the place of its vector."""
        self.table[memory_id.encode()] = REMOVED_TOMBSTONE + _written(place)

    def is_removed(self, partition: int, memory_id: str) -> bool:
        """Whether the record is no more."""
        return (read_stored(self.table, partition, memory_id) or b"").startswith(TOMBSTONES)

    def removed(self, partition: int) -> Iterator[str | None]:
        """The ids of what was removed and not forgotten; None for everything else."""
        return (
            key.decode() if value.startswith(REMOVED_TOMBSTONE) else None
            for key, value in iter_stored(self.table, partition)
        )

    def last_place(self, partition: int, memory_id: str) -> VectorLocation | None:
        """The place in the mark."""
        value = read_stored(self.table, partition, memory_id) or b""
        return _place_in(value) if value.startswith(TOMBSTONES) else None

    def is_forgotten(self, partition: int, memory_id: str) -> bool:
        """Whether a mark stands there."""
        return (read_stored(self.table, partition, memory_id) or b"").startswith(FORGOTTEN_TOMBSTONE)

    def pending_writes(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        return drain_pending_writes(self.table)

    def all(self) -> Iterator[Memory]:
        """Every record of the partitions that are here."""
        return (Memory.model_validate_json(value) for value in self.table.values() if not value.startswith(TOMBSTONES))

    def tombstones(self) -> Iterator[tuple[str, VectorLocation]]:
        """The ids of those that are no more in the partitions that are here, and where their vectors were."""
        for key, value in self.table.items():
            if value.startswith(TOMBSTONES) and (place := _place_in(value)) is not None:
                yield key.decode(), place


def _written(place: VectorLocation | None) -> bytes:
    return place.model_dump_json().encode() if place else b""


def _place_in(mark: bytes) -> VectorLocation | None:
    place = mark.removeprefix(FORGOTTEN_TOMBSTONE).removeprefix(REMOVED_TOMBSTONE)
    return VectorLocation.model_validate_json(place) if place else None
