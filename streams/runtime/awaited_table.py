"""The base of every table: a Faust table with a compacted changelog and awaitable writes.

A write names its partition; it reaches the local store at once and the changelog soon after. `drain_pending_writes`
returns what must be awaited before the event that caused it may be acknowledged, so that no record is only on one
worker's disk. A write that Kafka refuses for good raises KafkaError there: the event is never acknowledged, and its
agent ends.
"""

import asyncio
from collections.abc import Awaitable, Iterator
from typing import Any

import faust
import structlog
from faust.types import TP, FutureMessage

from schemas.failures import RowTooLarge
from streams.partition.database import TableRows
from streams.runtime.bursts import CHANGELOG_RETRY_S
from streams.runtime.kafka_refusals import REFUSALS
from streams.runtime.row_limit import limit_row
from streams.topics import CHANGELOG

log = structlog.get_logger()


def create_table(app: faust.App, name: str) -> "AwaitableTable":
    """Add a table with keys and values of bytes to the app."""
    table = AwaitableTable(app, name=name, key_type=bytes, value_type=bytes)
    app.tables.add(table)
    return table


class AwaitableTable(faust.Table):  # type: ignore[type-arg]
    """A Faust table that collects its changelog writes, and reads and writes a partition's store directly.

    Faust's own reads look twice and find the partition by the event in progress, which a reader that has awaited
    anything no longer has. They took a quarter of a query's time.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("extra_topic_configs", CHANGELOG)
        super().__init__(*args, **kwargs)
        self.pending_writes: list[Awaitable[None]] = []
        self._newest: dict[bytes, FutureMessage] = {}
        self._written_offsets: dict[TP, int] = {}
        """Offsets in the changelog that the stores do not name yet."""

    def write(self, partition: int, key: str, value: bytes) -> None:
        """Write a row, first to the changelog's buffer. Raises RowTooLarge, with nothing written."""
        try:
            limit_row(self.name, value)
        except RowTooLarge as error:
            log.warning("row refused", problem=error.message)
            raise
        encoded = key.encode()
        self.send_changelog(partition, encoded, value)
        self.rows(partition).put(encoded, value)

    def delete(self, partition: int, key: str) -> None:
        """Delete a row, first in the changelog's buffer."""
        encoded = key.encode()
        self.send_changelog(partition, encoded, None, value_serializer="raw")
        self.rows(partition).delete(encoded)

    def fill_changelog(self, partition: int, key: str) -> None:
        """Write one record more to the changelog: the deletion of a row that does not exist."""
        self.send_changelog(partition, key.encode(), None, value_serializer="raw")

    def read(self, partition: int, key: str) -> bytes | None:
        """Return the value in a partition's store."""
        # Spelled out: a query reads a thousand values.
        store: Any = self.data
        value: bytes | None = store.rows(partition).get(key.encode())
        return value

    def scan(self, partition: int) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over a partition's store in the order on disk: a tenth of the time of single reads."""
        return self.rows(partition).items()

    def keys_from(self, partition: int, first: bytes) -> Iterator[bytes]:
        """Iterate over a partition's keys in their order, from `first` on."""
        return self.rows(partition).keys(from_key=first)

    def drain_pending_writes(self) -> list[Awaitable[None]]:
        """Return what must be awaited for the writes since the last call."""
        writes, self.pending_writes = self.pending_writes, []
        return writes

    def send_changelog(self, partition: int | None, key: Any, value: Any, *args: Any, **kwargs: Any) -> FutureMessage:
        """Write to the changelog, and again if the producer fails."""
        writing = self._newest[key] = super().send_changelog(partition, key, value, *args, **kwargs)
        self.pending_writes.append(self._until_written(partition, key, value, writing))
        return writing

    async def _until_written(self, partition: int | None, key: Any, value: Any, writing: FutureMessage) -> None:
        while True:
            try:
                await writing
            except REFUSALS:
                raise
            except Exception as problem:
                log.warning("changelog write failed, retrying", problem=repr(problem))
                await asyncio.sleep(CHANGELOG_RETRY_S)
                # A newer record of this key has an event of its own; the old one must not land after it.
                if self._newest.get(key) is not writing:
                    return
                writing = self._newest[key] = super().send_changelog(partition, key, value)
            else:
                if self._newest.get(key) is writing:
                    del self._newest[key]
                return

    def _on_changelog_sent(self, fut: FutureMessage) -> None:
        """Note the offset of a written record in the store, once for all that are reported in one pass of the loop.

        A store that names an earlier offset reads these records again after a kill.
        """
        written = fut.result()
        if not self._written_offsets:
            asyncio.get_running_loop().call_soon(self._persist_offsets)
        self._written_offsets[written.topic_partition] = written.offset

    def _persist_offsets(self) -> None:
        offsets, self._written_offsets = self._written_offsets, {}
        for tp, offset in offsets.items():
            # What a partition that has left does not note here is read from the changelog once more.
            if self.data.is_held(tp.partition):  # type: ignore[attr-defined]
                self.data.set_persisted_offset(tp, offset)

    def _verify_source_topic_partitions(self, source_topic: str) -> None:
        """Accept an input topic with added partitions: `FixedPartitionAssignor` assigns none of them."""

    def rows(self, partition: int) -> TableRows:
        """Return the rows of a partition."""
        store: Any = self.data
        rows: TableRows = store.rows(partition)
        return rows
