"""What every table is made of: Faust's, on RocksDB with a compacted changelog, with writes that can be awaited.

A write reaches the local store at once and the changelog soon after. `drain_pending_writes` gives what must be awaited before
the event that caused it may be acknowledged, so that no record is only on one worker's disk.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from typing import Any

import faust
import structlog
from faust.types import FutureMessage

from streams.topics import CHANGELOG

log = structlog.get_logger()

CHANGELOG_RETRY_S = 0.5
"""The pause before a changelog record is written again."""


class AwaitableTable(faust.Table):  # type: ignore[type-arg]
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
                await asyncio.sleep(CHANGELOG_RETRY_S)
                # A newer record of that key is on its way with an event of its own; the old must not land after it.
                if self._newest.get(key) is not writing:
                    return
                writing = self._newest[key] = super().send_changelog(partition, key, value)
            else:
                if self._newest.get(key) is writing:
                    del self._newest[key]
                return


def read_stored(table: faust.Table, partition: int, key: str) -> bytes | None:  # type: ignore[type-arg]
    """The value in a partition's store.

    Asks the store itself: the table asks twice, and finds the partition by the event that is being handled, which a
    reader that waited has no more. It was a quarter of a question's time.
    """
    store: Any = table.data
    value: bytes | None = store._db_for_partition(partition).get(key.encode())  # noqa: SLF001
    return value


def iter_stored(table: faust.Table, partition: int) -> Iterator[tuple[bytes, bytes]]:  # type: ignore[type-arg]
    """Keys and values of a partition's store, from the front of the disk to its end: a tenth of the time of asking."""
    store: Any = table.data
    found: Iterator[tuple[bytes, bytes]] = store._db_for_partition(partition).items()  # noqa: SLF001
    return found


def drain_pending_writes(table: AwaitableTable) -> list[Awaitable[None]]:
    """What must be awaited for a table's writes since the last call."""
    writes, table.writes = table.writes, []
    return writes
