"""Reads of a partition by a consumer of their own: where its log ends, the keys of its last records, its rows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from faust.types import TP

from streams.settings import KafkaConnection
from streams.topics import MAX_OUTPUT_BYTES

LAST_KEYS = 50
"""Records at the end of a changelog that tell whether it is that of a table: one key in common suffices."""

LAST_KEYS_TIMEOUT_MS = 10_000
"""How long they may take; a fetch from a broker in order takes some milliseconds."""

FETCH_WAIT_MS = 500
"""How long the broker may delay an empty response."""


async def read_end(connection: KafkaConnection, tp: TP) -> int:
    """Return the end offset of a partition, open transactions included. Raises KafkaError."""
    async with AIOKafkaConsumer(**connection) as consumer:
        end: int = (await consumer.end_offsets([TopicPartition(*tp)]))[TopicPartition(*tp)]
    return end


async def read_last_keys(connection: KafkaConnection, tp: TP, last: int) -> list[bytes]:
    """Return the keys of some records at the end of a partition, whose last offset is `last`. Raises KafkaError."""
    if last < 0:
        return []
    partition = TopicPartition(*tp)
    async with AIOKafkaConsumer(**connection, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition])
        consumer.seek(partition, max(0, last + 1 - LAST_KEYS))
        records = await consumer.getmany(partition, timeout_ms=LAST_KEYS_TIMEOUT_MS)
    return [record.key for record in records.get(partition, ())]


@asynccontextmanager
async def changelog_consumer(connection: KafkaConnection) -> AsyncIterator[AIOKafkaConsumer]:
    """Connect to read changelogs, outside of a group. Raises KafkaError."""
    consumer = AIOKafkaConsumer(
        **connection,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=FETCH_WAIT_MS,
        max_partition_fetch_bytes=MAX_OUTPUT_BYTES,
    )
    try:
        await consumer.start()
        # aiokafka's `stop` raises CancelledError while a task that it has just started has not run yet.
        await asyncio.sleep(0)
        yield consumer
    finally:
        await consumer.stop()


async def read_records(connection: KafkaConnection, tp: TP, start: int, end: int) -> AsyncIterator[list[Any]]:
    """Yield the records of a partition from `start` up to `end`, some at a time. Raises KafkaError."""
    partition = TopicPartition(*tp)
    async with changelog_consumer(connection) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, start)
        while await consumer.position(partition) < end:
            for records in (await consumer.getmany(partition, timeout_ms=FETCH_WAIT_MS)).values():
                yield [record for record in records if record.offset < end]
