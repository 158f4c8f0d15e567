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

from schemas.memories import Memory
from streams.topics import MAX_INPUT_BYTES

log = structlog.get_logger()

RETRY_SECONDS = 0.5
"""The pause before a changelog record is written again."""


class AwaitedTable(faust.Table):  # type: ignore[type-arg]
    """A Faust table that keeps its changelog writes for whoever must await them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
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


class MemoryTable:
    """The table `memories`. Calls belong to the handling of an event of the memory's partition."""

    def __init__(self, app: faust.App) -> None:
        self.table = AwaitedTable(
            app,
            name="memories",
            key_type=bytes,
            value_type=bytes,
            extra_topic_configs={"max.message.bytes": str(2 * MAX_INPUT_BYTES)},
        )
        app.tables.add(self.table)

    def get(self, partition: int, memory_id: str) -> Memory | None:
        """The record, or None.

        Asks the partition's store itself: the table asks twice, and finds the partition by the event that is being
        handled, which a reader that waited has no more. It was a quarter of a question's time.
        """
        store: Any = self.table.data
        value: bytes | None = store._db_for_partition(partition).get(memory_id.encode())  # noqa: SLF001
        return None if value is None else Memory.model_validate_json(value)

    def put(self, _partition: int, memory: Memory) -> None:
        """Write a record over the one before."""
        self.table[memory.memory_id.encode()] = memory.model_dump_json().encode()

    def unwritten(self) -> list[Awaitable[None]]:
        """What must be awaited for the writes since the last call."""
        writes, self.table.writes = self.table.writes, []
        return writes

    def all(self) -> Iterator[Memory]:
        """Every record of the partitions that are here."""
        return (Memory.model_validate_json(value) for value in self.table.values())
