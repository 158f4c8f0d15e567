"""Producers of the worker's records: creating them, and handing a record to one."""

import asyncio

from aiokafka import AIOKafkaProducer

from schemas.messages.records import Outgoing
from streams.runtime.fence import GroupFence
from streams.settings import KafkaConnection
from streams.topics import MAX_OUTPUT_BYTES

NULL_KEY = object()
"""Stands for the missing key of a record without a value. Such records exist in Kafka, and their dead letters are such
records too; aiokafka rejects them before it serialises the key."""

DeliveryFuture = asyncio.Future[object]
"""Done when the broker has acknowledged a record, or the producer has given it up."""


def create_producer(
    connection: KafkaConnection,
    *,
    enable_idempotence: bool,
    request_timeout_ms: int,
    compression: str | None = None,
    fence: GroupFence | None = None,
) -> AIOKafkaProducer:
    """Create a producer of the worker, not started. Its requests wait at the `fence`."""
    producer = AIOKafkaProducer(
        **connection,
        acks="all",
        # `NULL_KEY` becomes no key.
        key_serializer=lambda key: key if isinstance(key, bytes) else None,
        enable_idempotence=enable_idempotence,
        max_request_size=MAX_OUTPUT_BYTES,
        max_batch_size=256 * 1024,
        request_timeout_ms=request_timeout_ms,
        compression_type=compression,
    )
    return producer if fence is None else fence.guard(producer)


async def hand_over(producer: AIOKafkaProducer, out: Outgoing) -> DeliveryFuture:
    """Hand a record to a producer; waits for the metadata of its topic, and while its batch is full."""
    delivery: DeliveryFuture = await producer.send(
        out.topic,
        out.value,
        key=NULL_KEY if out.key is None and out.value is None else out.key,
        partition=out.partition,
        timestamp_ms=out.timestamp_ms,
        headers=list(out.headers),
    )
    return delivery
