"""Read partitions outside of a consumer group: from an offset, to the present end, as they are written, or backwards.

All consumers but Faust's own are created here. Guaranteed: the records of a partition come in their order, each once; a
lost connection delays them and loses none. Calls raise KafkaError.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import TopicPartition

from modestream_client.kafka.own_clients import OwnConsumer
from modestream_client.records import Record

POLL_MS = 500

PAGE_RECORDS = 1000

LOOKUP_S = 1.0
"""Interval between lookups of missing topics."""

METADATA_S = 0.1
"""Interval between checks of the assignment."""

TopicAndPartition = tuple[str, int]


def log_consumer(connection: Mapping[str, Any], **options: Any) -> OwnConsumer:
    """Return a consumer, not yet started. `options`: aiokafka's arguments; `connection`: its address and security.

    By default it has no group, and begins at the oldest record where an offset does not exist.
    """
    # The position of an assigned partition is resolved in the background: it has to be the beginning from the start.
    return OwnConsumer(**{**connection, "auto_offset_reset": "earliest", "enable_auto_commit": False, **options})


class LogReader:
    """Reads with a started consumer. `partitions` stay assigned; others only while they are read, one at a time."""

    def __init__(self, consumer: Any, partitions: Collection[TopicAndPartition] = ()) -> None:
        self._consumer = consumer
        self._partitions = [TopicPartition(*each) for each in partitions]
        self._reading = asyncio.Lock()
        if partitions:
            consumer.assign(self._partitions)

    async def ends(self, partitions: Collection[TopicAndPartition] | None = None) -> dict[TopicAndPartition, int]:
        """Return the offsets after the last readable records, by default of the assigned partitions."""
        wanted = self._partitions if partitions is None else [TopicPartition(*each) for each in partitions]
        return dict(await self._consumer.end_offsets(wanted))

    async def begin(self, partition: TopicAndPartition) -> int:
        return (await self.begins([partition]))[partition]

    async def begins(self, partitions: Collection[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        return dict(await self._consumer.beginning_offsets([TopicPartition(*each) for each in partitions]))

    async def first_since(
        self, partitions: Collection[TopicAndPartition], moment_ms: int
    ) -> dict[TopicAndPartition, int | None]:
        """Return the offsets of the first records of a time or later; None where there is no such record."""
        wanted = dict.fromkeys((TopicPartition(*each) for each in partitions), max(moment_ms, 0))
        times = await self._consumer.offsets_for_times(wanted)
        return {partition: None if first is None else first.offset for partition, first in times.items()}

    async def read(
        self, partition: TopicAndPartition, offset: int, most: int | None = PAGE_RECORDS, wait_ms: int = POLL_MS
    ) -> tuple[list[Record], int]:
        """Return at most `most` records from an offset on, and the offset to read next.

        If retention has removed the offset, reading starts at the first remaining record.
        """
        source = TopicPartition(*partition)
        async with self._reading:
            if source not in self._consumer.assignment():
                self._consumer.assign([*self._partitions, source])
            if next_offset(self._consumer, source) != offset:
                self._consumer.seek(source, offset)
            fetched = await self._consumer.getmany(source, timeout_ms=wait_ms, max_records=most)
            # A position, not the last record's offset: compaction may have removed the last records.
            following = max(offset, await self._consumer.position(source))
        return _records(fetched.get(source, ())), following

    async def read_range(
        self, partition: TopicAndPartition, start: int, end: int, most: int | None = PAGE_RECORDS
    ) -> AsyncIterator[list[Record]]:
        """Yield the records from `start` to before `end`, at most `most` at a time; other tasks run in between."""
        while start < end:
            records, start = await self.read(partition, start, most)
            yield [record for record in records if record.offset < end]
            await asyncio.sleep(0)

    async def read_to_end(self, partition: TopicAndPartition) -> AsyncIterator[list[Record]]:
        """Yield all present records of a partition, in batches."""
        end = (await self.ends([partition]))[partition]
        async for records in self.read_range(partition, 0, end):
            yield records

    async def read_through(self, partition: TopicAndPartition, take: Callable[[Record], object]) -> None:
        """Call `take` with all present records of a partition, without holding them in memory."""
        async for records in self.read_to_end(partition):
            for record in records:
                take(record)

    async def windows_backwards(self, partition: TopicAndPartition, first: int) -> AsyncIterator[range]:
        """Yield the offsets of a partition, from its present end to its beginning.

        The last window has `first` offsets, each one before it as many as all yielded so far.
        """
        start = end = (await self.ends([partition]))[partition]
        begin = await self.begin(partition)
        while start > begin:
            stop, start = start, max(begin, start - max(first, end - start))
            yield range(start, stop)

    async def subscribe(self, topics: Sequence[str]) -> list[TopicAndPartition]:
        """Assign all partitions of topics, also those added later; return them once all topics are there."""
        # A missing topic subscribed by name would be looked for again only after minutes.
        while not set(topics) <= await self._consumer.topics():  # noqa: ASYNC110
            await asyncio.sleep(LOOKUP_S)
        self._consumer.subscribe(topics)
        # Without a group all partitions of a topic are assigned as soon as it is there, without any event.
        while {each.topic for each in self._consumer.assignment()} != set(topics):  # noqa: ASYNC110
            await asyncio.sleep(METADATA_S)
        return sorted(self._consumer.assignment())

    def seek(self, offsets: Mapping[TopicAndPartition, int]) -> None:
        """Let `poll` continue at these offsets of assigned partitions."""
        for partition, offset in offsets.items():
            self._consumer.seek(TopicPartition(*partition), offset)

    async def poll(self, most: int | None = None, wait_ms: int = POLL_MS) -> dict[TopicAndPartition, list[Record]]:
        """Return the next records of all assigned partitions, except empty ones."""
        fetched = await self._consumer.getmany(timeout_ms=wait_ms, max_records=most)
        return {partition: _records(records) for partition, records in fetched.items()}

    def position(self, partition: TopicAndPartition) -> int | None:
        """Return the offset that is read next; None if unknown."""
        return next_offset(self._consumer, TopicPartition(*partition))

    async def commit(self) -> None:
        """Commit the positions for the consumer's group."""
        await self._consumer.commit()


@asynccontextmanager
async def open_log_reader(
    connection: Mapping[str, Any], partitions: Collection[TopicAndPartition] = (), **options: Any
) -> AsyncIterator[LogReader]:
    """Connect; arguments as for `log_consumer`. Raises KafkaError or OSError."""
    consumer = log_consumer(connection, **options)
    try:
        await consumer.start()
        yield LogReader(consumer, partitions)
    finally:
        await consumer.stop()


def next_offset(consumer: Any, partition: TopicPartition) -> int | None:
    """Return the offset that a consumer reads next, behind control records; None if unknown."""
    # aiokafka's own `position` may wait.
    state = consumer._subscription.subscription.assignment.state_value(partition)  # noqa: SLF001
    position: int | None = state.position if state.has_valid_position else None
    return position


def _records(fetched: Collection[Any]) -> list[Record]:
    return [
        Record(read.topic, read.partition, read.offset, read.timestamp, read.key, read.value, tuple(read.headers))
        for read in fetched
    ]
