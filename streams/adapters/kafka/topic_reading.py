"""Read partitions once, from their beginning to their present end, outside of any consumer group."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaError
from modestream_client.kafka.own_clients import OwnConsumer

from schemas.failures import Unavailable
from schemas.messages.records import Record
from streams.settings import Settings

READ_TIMEOUT_S = 60.0
"""Limit of one attempt: a million tombstones are read in a fraction of it."""

POLL_MS = 200
"""How long one fetch waits for records."""

Found = Callable[[Record], bool]
"""True for a record after which nothing more is read."""


def log_consumer(settings: Settings, **how: Any) -> AIOKafkaConsumer:
    """Return a consumer without a group, not yet started; `how` are further arguments of it.

    The position of an assigned partition is resolved in the background: it has to be the beginning from the start.
    """
    return OwnConsumer(**settings.kafka_connection, auto_offset_reset="earliest", enable_auto_commit=False, **how)


async def read_to_end(
    settings: Settings, topic: str, partitions: Iterable[int], found: Found = lambda _: False
) -> list[Record]:
    """Return the records of these partitions, each in its order, at most up to the first that is `found`.

    Includes what was acknowledged before the call. Raises Unavailable while Kafka can't be read.
    """
    records: list[Record] = []

    def take(record: Record) -> bool:
        records.append(record)
        return found(record)

    await read_each(settings, topic, partitions, take)
    return records


async def read_each(settings: Settings, topic: str, partitions: Iterable[int], take: Found) -> None:
    """Call `take` with the records of these partitions, as `read_to_end` returns them, and keep none of them."""
    consumer = log_consumer(settings)
    try:
        async with asyncio.timeout(READ_TIMEOUT_S):
            await consumer.start()
            await _read(consumer, [TopicPartition(topic, number) for number in partitions], take)
    except (KafkaError, OSError) as problem:
        raise Unavailable(f"{topic} can't be read: {problem!r}") from problem
    finally:
        await consumer.stop()


async def _read(consumer: AIOKafkaConsumer, partitions: list[TopicPartition], take: Found) -> None:
    consumer.assign(partitions)
    ends = await consumer.end_offsets(partitions)
    for partition in partitions:
        # A position, not the last record's offset: compaction may have removed the last records.
        while await consumer.position(partition) < ends[partition]:
            for fetched in (await consumer.getmany(timeout_ms=POLL_MS)).values():
                if any(map(take, map(record_of, fetched))):
                    return


def record_of(read: ConsumerRecord) -> Record:
    """Return a record as read."""
    place = (read.topic, read.partition, read.offset)
    return Record(*place, read.timestamp, read.key, read.value, tuple(read.headers))
