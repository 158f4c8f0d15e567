"""Read logs of any length from any offset, outside of a consumer group."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from schemas.failures import Unavailable
from schemas.messages.records import Record
from streams.adapters.kafka.topic_reading import log_consumer, record_of
from streams.settings import Settings
from streams.topics import MAX_OUTPUT_BYTES

POLL_MS = 500
"""How long one fetch waits for records."""

PAGE_RECORDS = 1000
"""Records that are handed on together."""

TopicPlace = tuple[str, int]
"""A topic and a partition."""


class LogReader:
    """An open reader of some partitions."""

    def __init__(self, consumer: AIOKafkaConsumer, places: Collection[TopicPlace]) -> None:
        self._consumer = consumer
        self._places = [TopicPartition(*place) for place in places]
        self._lock = asyncio.Lock()

    async def ends(self) -> Mapping[TopicPlace, int]:
        """Return the offsets after the last readable records. Raises Unavailable."""
        try:
            found = await self._consumer.end_offsets(self._places)
        except KafkaError as problem:
            raise Unavailable(f"Kafka does not return the ends of the logs: {problem!r}") from problem
        return {(tp.topic, tp.partition): end for tp, end in found.items()}

    async def begin(self, place: TopicPlace) -> int:
        """Return the offset of the first record that a partition has. Raises Unavailable."""
        tp = TopicPartition(*place)
        try:
            return int((await self._consumer.beginning_offsets([tp]))[tp])
        except KafkaError as problem:
            raise Unavailable(f"Kafka does not return the beginning of {place[0]}: {problem!r}") from problem

    async def read(self, place: TopicPlace, offset: int, most: int) -> tuple[list[Record], int]:
        """Return at most `most` records from an offset on, and the offset to read next. Raises Unavailable.

        An offset that retention has removed is that of the first record that is left.
        """
        tp = TopicPartition(*place)
        try:
            async with self._lock:
                if await self._consumer.position(tp) != offset:
                    self._consumer.seek(tp, offset)
                fetched = await self._consumer.getmany(tp, timeout_ms=POLL_MS, max_records=most)
                records = [record_of(one) for several in fetched.values() for one in several]
                return records, max(offset, await self._consumer.position(tp))
        except KafkaError as problem:
            raise Unavailable(f"{place[0]} can't be read: {problem!r}") from problem

    async def read_through(self, place: TopicPlace, take: Callable[[Record], None]) -> int:
        """Call `take` with all records of a partition that are there, keep none, and return its end."""
        end = (await self.ends())[place]
        offset = 0
        while offset < end:
            records, offset = await self.read(place, offset, PAGE_RECORDS)
            for record in records:
                take(record)
        return end

    async def read_all(self, take: Callable[[Record], None]) -> None:
        """Call `take` with all records that are there, and keep none of them. Raises Unavailable."""
        for tp in self._places:
            await self.read_through((tp.topic, tp.partition), take)


@asynccontextmanager
async def open_log_reader(settings: Settings, places: Collection[TopicPlace]) -> AsyncIterator[LogReader]:
    """Connect to the broker of the settings, and read what their isolation level shows. Raises Unavailable."""
    consumer = log_consumer(
        settings, isolation_level=settings.isolation_level, max_partition_fetch_bytes=MAX_OUTPUT_BYTES
    )
    try:
        await consumer.start()
        consumer.assign([TopicPartition(*place) for place in places])
        yield LogReader(consumer, places)
    except KafkaError as problem:
        raise Unavailable(f"Kafka at {settings.broker} can't be reached: {problem!r}") from problem
    finally:
        await consumer.stop()
