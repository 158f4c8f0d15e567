"""The tables: Faust's, on RocksDB with compacted changelogs, in records rather than bytes.

A write reaches the local store at once and the changelog soon after. `unwritten` gives what must be awaited before
the event that caused it may be acknowledged, so that no record is only on one worker's disk.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from typing import Any

import faust
import structlog
from faust.types import FutureMessage

from schemas.memories import Memory, Place
from schemas.modes import Declared
from streams.parsed_values import ParsedValues
from streams.topics import CHANGELOG

log = structlog.get_logger()

RETRY_SECONDS = 0.5
"""The pause before a changelog record is written again."""


UNDECLARED = Declared()
"""What a boundary has that never declared anything."""

PARSED_MODES = 4096
"""Declarations that are kept parsed: a few megabytes."""

PARSED_MEMORIES = 2048
"""Records that are kept parsed: some 15 MB, at most 50. To parse one takes 36 us."""

SHORT_BYTES = 8192
"""Of a record that is kept parsed; that of a usual turn has 1,500."""


class AwaitedTable(faust.Table):  # type: ignore[type-arg]
    """A Faust table that keeps its changelog writes for whoever must await them; a record may be a large one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("extra_topic_configs", CHANGELOG)
        super().__init__(*args, **kwargs)
        self.writes: list[Awaitable[None]] = []
        self._newest: dict[bytes, FutureMessage] = {}

    def send_changelog(self, partition: int | None, key: Any, value: Any, *args: Any, **kwargs: Any) -> FutureMessage:
        """Write to the changelog, again if the producer gives up."""
        writing = self._newest[key] = super().send_changelog(partition, key, value, *args, **kwargs)
        self.writes.append(self._until_written(partition, key, value, writing))
        return writing

    async def _until_written(self, partition: int | None, key: Any, value: Any, writing: FutureMessage) -> None:
        while True:
            try:
                await writing
            except Exception as problem:
                log.warning("the changelog did not take a record; it is written again", problem=repr(problem))
                await asyncio.sleep(RETRY_SECONDS)
                # A newer record of that key is on its way with an event of its own; the old must not land after it.
                if self._newest.get(key) is not writing:
                    return
                writing = self._newest[key] = super().send_changelog(partition, key, value)
            else:
                if self._newest.get(key) is writing:
                    del self._newest[key]
                return


FORGOTTEN = b"forgotten"
"""What a value begins with that stands in place of a forgotten record: kept for good, so that a replay does not bring
it back. The place of its vector follows, if it had one."""

REMOVED = b"removed"
"""The same of a record that was removed, and may come again."""

GONE = (FORGOTTEN, REMOVED)


class MemoryTable:
    """The table `memories`. Calls belong to the handling of an event of the memory's partition."""

    def __init__(self, app: faust.App) -> None:
        self.table = AwaitedTable(app, name="memories", key_type=bytes, value_type=bytes)
        app.tables.add(self.table)
        self._parsed = ParsedValues(Memory.model_validate_json, PARSED_MEMORIES, SHORT_BYTES)

    def get(self, partition: int, memory_id: str) -> Memory | None:
        """The record, or None. Answers read the same ones again and again."""
        value = stored(self.table, partition, memory_id)
        return None if value is None or value.startswith(GONE) else self._parsed[value]

    def put(self, _partition: int, memory: Memory) -> None:
        """Write a record over the one before."""
        self.table[memory.memory_id.encode()] = memory.model_dump_json().encode()

    def forget(self, _partition: int, memory_id: str, place: Place | None = None) -> None:
        """Leave a mark in place of a record."""
        self.table[memory_id.encode()] = FORGOTTEN + _written(place)

    def remove(self, _partition: int, memory_id: str, place: Place | None = None) -> None:
        """Leave nothing of a record but the place of its vector."""
        self.table[memory_id.encode()] = REMOVED + _written(place)

    def is_removed(self, partition: int, memory_id: str) -> bool:
        """Whether the record is no more."""
        return (stored(self.table, partition, memory_id) or b"").startswith(GONE)

    def last_place(self, partition: int, memory_id: str) -> Place | None:
        """The place in the mark."""
        value = stored(self.table, partition, memory_id) or b""
        return _place_in(value) if value.startswith(GONE) else None

    def is_forgotten(self, partition: int, memory_id: str) -> bool:
        """Whether a mark stands there."""
        return (stored(self.table, partition, memory_id) or b"").startswith(FORGOTTEN)

    def unwritten(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        return unwritten(self.table)

    def all(self) -> Iterator[Memory]:
        """Every record of the partitions that are here."""
        return (Memory.model_validate_json(value) for value in self.table.values() if not value.startswith(GONE))

    def gone(self) -> Iterator[tuple[str, Place]]:
        """The ids of those that are no more in the partitions that are here, and where their vectors were."""
        for key, value in self.table.items():
            if value.startswith(GONE) and (place := _place_in(value)) is not None:
                yield key.decode(), place


def _written(place: Place | None) -> bytes:
    return place.model_dump_json().encode() if place else b""


def _place_in(mark: bytes) -> Place | None:
    place = mark.removeprefix(FORGOTTEN).removeprefix(REMOVED)
    return Place.model_validate_json(place) if place else None


class ModeTable:
    """The table `modes`: what each boundary has declared, as JSON under its key. Its changelog is for reading, too."""

    def __init__(self, app: faust.App) -> None:
        self.table = AwaitedTable(app, name="modes", key_type=bytes, value_type=bytes)
        app.tables.add(self.table)
        self._parsed = ParsedValues(Declared.model_validate_json, PARSED_MODES)

    def get(self, partition: int, boundary: str) -> Declared:
        """What a boundary has declared. Every event asks."""
        value = stored(self.table, partition, boundary)
        return UNDECLARED if value is None else self._parsed[value]

    def put(self, _partition: int, boundary: str, declared: Declared) -> None:
        """Write what is declared over what was."""
        self.table[boundary.encode()] = declared.model_dump_json().encode()

    def unwritten(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        return unwritten(self.table)


def stored(table: faust.Table, partition: int, key: str) -> bytes | None:  # type: ignore[type-arg]
    """The value in a partition's store.

    Asks the store itself: the table asks twice, and finds the partition by the event that is being handled, which a
    reader that waited has no more. It was a quarter of a question's time.
    """
    store: Any = table.data
    value: bytes | None = store._db_for_partition(partition).get(key.encode())  # noqa: SLF001
    return value


def unwritten(table: AwaitedTable) -> list[Awaitable[None]]:
    """What must be awaited for a table's writes since the last call."""
    writes, table.writes = table.writes, []
    return writes
