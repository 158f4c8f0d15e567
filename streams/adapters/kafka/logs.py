"""The deployment's logs in Kafka, read outside of any consumer group by the client's `LogReader`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager
from typing import Any

from aiokafka.errors import KafkaError
from modestream_client.kafka.log_reader import LogReader, TopicAndPartition, open_log_reader

from schemas.failures import Unavailable
from schemas.messages.records import Record
from streams.settings import Settings
from streams.topics import MAX_OUTPUT_BYTES

READ_TIMEOUT_S = 60.0
"""Limit of one attempt: a million tombstones are read in a fraction of it."""


@asynccontextmanager
async def open_reader(
    settings: Settings, partitions: Collection[TopicAndPartition] = (), **options: Any
) -> AsyncIterator[LogReader]:
    """Connect, and read what the settings' isolation level shows; `options` are further ones of the consumer.

    Raises Unavailable for errors of Kafka, those in the block too.
    """
    options = {"isolation_level": settings.isolation_level, "max_partition_fetch_bytes": MAX_OUTPUT_BYTES} | options
    try:
        async with open_log_reader(settings.kafka_connection, partitions, **options) as reader:
            yield reader
    except KafkaError as problem:
        raise Unavailable(f"Kafka at {settings.broker} can't be read: {problem!r}") from problem


async def read_to_end(settings: Settings, topic: str, partitions: Iterable[int]) -> list[Record]:
    """Return the records of these partitions, each in its order, with all that were acknowledged before the call.

    Raises Unavailable while Kafka can't be read.
    """
    records: list[Record] = []
    await read_each(settings, topic, partitions, records.append)
    return records


async def read_each(
    settings: Settings, topic: str, partitions: Iterable[int], take: Callable[[Record], object]
) -> None:
    """Call `take` with the records of these partitions, as `read_to_end` returns them, and keep none of them."""
    try:
        async with asyncio.timeout(READ_TIMEOUT_S), open_reader(settings) as reader:
            for number in partitions:
                await reader.read_through((topic, number), take)
    except OSError as problem:
        raise Unavailable(f"{topic} can't be read: {problem!r}") from problem
