"""The base of every table: rows in the database of a partition, and in a compacted changelog.

A write names its partition; it reaches the database at once and the changelog with the next commit. `pending_writes`
returns an awaitable for the acknowledgement of the event that caused them, so that no record is only on one worker's
disk.

Faust's store of a table is a view on the database of each partition: an unreadable row never counts as missing, and a
write that fails because the disk is full or away is `Unavailable`, so that no record is refused meanwhile. Only
partitions that this process holds are open.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import faust
import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    InvalidTopicError,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerClosed,
    RecordListTooLargeError,
    RecordTooLargeError,
)
from faust.exceptions import ProducerSendError
from faust.stores import STORES
from faust.stores.base import SerializedStore
from faust.transport.drivers.aiokafka import Producer
from faust.types import TP

from schemas.failures import RowTooLarge
from streams.partition.database import PartitionDatabases, TableRows
from streams.runtime.fence import end_process
from streams.topics import CHANGELOG

PARTITION_STORE = "partition"
"""The scheme of the URL by which Faust finds `PartitionStore`."""

STORES.aliases[PARTITION_STORE] = f"{__name__}:PartitionStore"

DeriveRows = Callable[[int, Mapping[bytes, bytes | None]], None]
"""Writes data derived from rows of a partition; None for a deleted row."""

UNWRITTEN = "unwritten rows of {}"
"""Stored in place of an offset while a changelog lacks rows."""


def databases_of(app: Any) -> PartitionDatabases:
    databases: PartitionDatabases | None = getattr(app, "databases", None)
    if databases is None:
        databases = app.databases = PartitionDatabases(Path(app.conf.datadir), end_process)
    return databases


class PartitionStore(SerializedStore[bytes, bytes]):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._views: dict[int, TableRows] = {}

    def rows(self, partition: int) -> TableRows:
        """Return the rows of a partition. Raises KeyError where another process holds it."""
        view = self._views.get(partition)
        if view is None:
            if not self.is_held(partition):
                raise KeyError(partition)
            view = self._views[partition] = databases_of(self.app).at(partition).table(self.table_name)
        return view

    def is_held(self, partition: int) -> bool:
        """True if the partition may be opened here."""
        locks = getattr(self.app, "partition_locks", None)
        return locks is None or bool(locks.is_held(partition))

    def close_partition(self, partition: int) -> None:
        """Forget the view of a partition, whose database is closed next."""
        self._views.pop(partition, None)

    def persisted_offset(self, tp: TP) -> int | None:
        """Return the offset of the last changelog record applied here; None before the first."""
        self.rows(tp.partition)
        following = databases_of(self.app).at(tp.partition).offset(tp.topic)
        return None if following is None else following - 1

    def set_persisted_offset(self, tp: TP, offset: int) -> None:
        """Store it; durable with the next commit."""
        self.rows(tp.partition)
        databases_of(self.app).at(tp.partition).set_offset(tp.topic, offset + 1)

    def is_unwritten(self, tp: TP) -> bool:
        """True while the changelog lacks rows of the table."""
        return databases_of(self.app).at(tp.partition).offset(UNWRITTEN.format(tp.topic)) == 1

    def set_unwritten(self, tp: TP, *, is_unwritten: bool) -> None:
        """Note whether the changelog lacks rows, and commit that with the persisted offset."""
        databases_of(self.app).at(tp.partition).set_offset(UNWRITTEN.format(tp.topic), int(is_unwritten))
        self.commit(tp.partition)

    def apply_changelog_batch(self, batch: Iterable[Any], *_codecs: Any, **_named_codecs: Any) -> None:
        """Write rows of held partitions; those of others were read before a rebalance."""
        written: defaultdict[TP, dict[bytes, bytes | None]] = defaultdict(dict)
        offsets: dict[TP, int] = {}
        for event in batch:
            if self.is_held(event.message.partition):
                written[event.message.tp][event.message.key] = event.message.value
                offsets[event.message.tp] = event.message.offset
        for tp, rows in written.items():
            self.apply_rows(tp, rows, offsets[tp])
            self.commit(tp.partition)

    def apply_rows(self, tp: TP, rows: Mapping[bytes, bytes | None], offset: int) -> None:
        """Write rows of a changelog, data derived from them, and the offset of the last."""
        if (derive := self.app.derive.get(self.table_name)) is not None:  # type: ignore[attr-defined]
            derive(tp.partition, rows)
        self.rows(tp.partition).apply(rows.items())
        self.set_persisted_offset(tp, offset)

    def commit(self, partition: int) -> None:
        databases_of(self.app).at(partition).commit()

    async def stop(self) -> None:
        self._views.clear()

    def reset_state(self) -> None:
        """Faust's command to reset an app is not offered."""
        raise NotImplementedError

    async def backup_partition(self, *_arguments: Any, **_options: Any) -> None:
        """Faust's backups are not offered."""
        raise NotImplementedError

    def restore_backup(self, *_arguments: Any, **_options: Any) -> None:
        """Faust's backups are not offered."""
        raise NotImplementedError

    def _get(self, key: bytes) -> bytes | None:
        raise NotImplementedError("a read names its partition")

    def _set(self, key: bytes, value: bytes | None) -> None:
        raise NotImplementedError("a write names its partition")

    def _del(self, key: bytes) -> None:
        raise NotImplementedError("a write names its partition")

    def _contains(self, key: bytes) -> bool:
        raise NotImplementedError("a read names its partition")

    def _clear(self) -> None:
        raise NotImplementedError

    def _size(self) -> int:
        return sum(1 for _ in self._iterkeys())

    def _iterkeys(self) -> Iterator[bytes]:
        return (key for key, _ in self._iteritems())

    def _itervalues(self) -> Iterator[bytes]:
        return (value for _, value in self._iteritems())

    def _iteritems(self) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over the rows of the partitions that are served."""
        topic = self.table.changelog_topic_name  # type: ignore[attr-defined]
        actives = self.app.assignor.assigned_actives()
        for partition in list(self._views):
            if TP(topic, partition) in actives:
                yield from self.rows(partition).items()


log = structlog.get_logger()


class Commits(Protocol):
    def write(self, partition: int, changelog: str, key: bytes, value: bytes | None) -> None:
        """Note a written row, for its changelog."""

    def commit(self, partitions: Collection[int], *, is_hurried: bool = False) -> Coroutine[Any, Any, None]:
        """Make the writes durable."""


class Committed:
    """Awaitable of the commit of partitions, which starts when awaited. It need not be awaited."""

    def __init__(self, commits: Commits, partitions: Collection[int]) -> None:
        self._commits = commits
        self._partitions = partitions

    def __await__(self) -> Generator[Any, None, None]:
        return self._commits.commit(self._partitions, is_hurried=True).__await__()


def create_table(app: faust.App, name: str) -> "AwaitableTable":
    """Add a table with keys and values of bytes to the app."""
    table = AwaitableTable(app, name=name, key_type=bytes, value_type=bytes)
    app.tables.add(table)
    return table


class AwaitableTable(faust.Table):  # type: ignore[type-arg]
    """A Faust table whose rows are read and written in a partition's database.

    Faust's own reads look twice and find the partition by the current event, which a reader no longer has after its
    first await. They took a quarter of a query's time. Writes are part of the app's `commits`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("extra_topic_configs", CHANGELOG)
        super().__init__(*args, **kwargs)
        self._written: set[int] = set()

    def write(self, partition: int, key: str, value: bytes) -> None:
        """Write a row. Raises RowTooLarge, with nothing written."""
        try:
            limit_row(self.name, value)
        except RowTooLarge as error:
            log.warning("row refused", problem=error.message)
            raise
        encoded = key.encode()
        self.rows(partition).put(encoded, value)
        self._note(partition, encoded, value)

    def delete(self, partition: int, key: str) -> None:
        encoded = key.encode()
        self.rows(partition).delete(encoded)
        self._note(partition, encoded, None)

    def read(self, partition: int, key: str) -> bytes | None:
        # Spelled out: a query reads a thousand values.
        store: Any = self.data
        value: bytes | None = store.rows(partition).get(key.encode())
        return value

    def scan(self, partition: int) -> Iterator[tuple[bytes, bytes]]:
        """Iterate over a partition's store in the order on disk: a tenth of the time of single reads."""
        return self.rows(partition).items()

    def keys_under(self, partition: int, prefix: str) -> Iterator[str]:
        """Iterate over a partition's keys with a prefix in their order."""
        return (key.decode() for key in self.rows(partition).keys(prefix.encode()))

    def pending_writes(self) -> list[Awaitable[None]]:
        """Return the awaitable of all writes since the last call."""
        written, self._written = self._written, set()
        return [Committed(self._commits, written)] if written else []

    def rows(self, partition: int) -> TableRows:
        store: Any = self.data
        rows: TableRows = store.rows(partition)
        return rows

    def _note(self, partition: int, key: bytes, value: bytes | None) -> None:
        self._commits.write(partition, self.changelog_topic.get_topic_name(), key, value)
        self._written.add(partition)

    @property
    def _commits(self) -> Commits:
        commits: Commits = self.app.commits  # type: ignore[attr-defined]
        return commits

    def _verify_source_topic_partitions(self, source_topic: str) -> None:
        """Accept an input topic with added partitions: `FixedPartitionAssignor` assigns none of them."""


# The limit of a table's row, checked before anything of it is written.
#
# Enters: a table's name and a serialised value. Guaranteed: an accepted row is far below the largest record of a
# changelog (`streams.topics.MAX_OUTPUT_BYTES`), so that Kafka never refuses a write that the local store has accepted.

MAX_ROW_BYTES = 2 * 1024 * 1024
"""An eighth of the largest record of a changelog. 256 usual categories with summaries take 0.8 MB; 64 modes with
descriptions of a page, 0.3 MB."""

MAX_MEMORY_ROW_BYTES = 12 * 1024 * 1024
"""A memory's row holds its turn, which is a record of up to 8 MiB, and its analysis."""

MAX_JOBS_ROW_BYTES = 10 * 1024 * 1024
"""A boundary's row of jobs holds 4 MiB of their answers as texts, which JSON may write twice as long."""

LIMITS: Mapping[str, tuple[str, int]] = {
    "memories": ("MAX_MEMORY_ROW_BYTES", MAX_MEMORY_ROW_BYTES),
    "jobs": ("MAX_JOBS_ROW_BYTES", MAX_JOBS_ROW_BYTES),
}
"""Name and bytes of the limit of tables that have their own."""


def limit_row(table: str, value: bytes | None) -> None:
    """Raise RowTooLarge for a value beyond the limit of its table."""
    name, limit = LIMITS.get(table, ("MAX_ROW_BYTES", MAX_ROW_BYTES))
    if value is not None and len(value) > limit:
        raise RowTooLarge(table, len(value), name, limit)


REFUSALS = (MessageSizeTooLargeError, RecordTooLargeError, RecordListTooLargeError, InvalidTopicError)
"""The same record never succeeds. All other errors may heal: a rebuilt topic, a corrected clock, granted rights."""

CHANGELOG_RETRY_S = 0.5
"""Pause before a row is handed to the producer again."""

Row = tuple[str, bytes, bytes | None, int]
"""Topic, key, value and partition."""


class ChangelogProducer(Producer):
    """Faust's producer, used by the commits of partitions to write their rows."""

    def _new_producer(self, *args: Any, **kwargs: Any) -> AIOKafkaProducer:
        return self.app.fence.guard(super()._new_producer(*args, **kwargs))  # type: ignore[attr-defined]

    async def send_row(self, topic: str, partition: int, key: bytes, value: bytes | None) -> Awaitable[int]:
        """Hand a row over, without a time limit; the result is its offset. Raises KafkaError if it is refused.

        Rows stay in order only if no newer row of a key is handed over before the result.
        """
        row = topic, key, value, partition
        return self._written(row, await self._accepted(row))

    async def _accepted(self, row: Row) -> Awaitable[Any]:
        while True:
            try:
                return await self.send(*row, None, None)
            except ProducerSendError as problem:
                cause = problem.__cause__
                if isinstance(cause, (*REFUSALS, ProducerClosed)):
                    raise cause from problem
                await _pause(cause)

    async def _written(self, row: Row, delivery: Awaitable[Any]) -> int:
        while True:
            try:
                return int((await delivery).offset)
            except REFUSALS:
                raise
            except KafkaError as problem:
                await _pause(problem)
                delivery = await self._accepted(row)


async def _pause(problem: BaseException | None) -> None:
    log.warning("Kafka did not accept a row of a changelog, sending it again", problem=repr(problem))
    await asyncio.sleep(CHANGELOG_RETRY_S)
