"""Tell the gateways of a deployment which one replaces it, through its topic `service`."""

from aiokafka.errors import KafkaError

from schemas.failures import Unavailable
from schemas.internal.successor import SUCCESSOR_KEY, Successor
from schemas.messages.records import Outgoing
from streams.adapters.kafka.admin import count_partitions
from streams.adapters.kafka.logs import read_to_end
from streams.adapters.kafka.producers import create_producer, hand_over
from streams.adapters.kafka.service_log import SERVICE_PARTITION, last_successor
from streams.settings import Settings
from streams.topics import topics_with_prefix

WRITE_TIMEOUT_MS = 20_000
"""Limit of one request to Kafka."""


async def read_successor(settings: Settings) -> Successor | None:
    """Return what is written last; None if nothing is, or there is no such topic. Raises Unavailable."""
    topic = topics_with_prefix(settings.topic_prefix).service
    if not await count_partitions(settings, topic):
        return None
    return last_successor(await read_to_end(settings, topic, [SERVICE_PARTITION]))


async def write_successor(settings: Settings, successor: Successor) -> None:
    """Write it, and wait until Kafka has it. Raises Unavailable, perhaps after it was written."""
    value = successor.model_dump_json(by_alias=True).encode()
    topic = topics_with_prefix(settings.topic_prefix).service
    producer = create_producer(settings.kafka_connection, enable_idempotence=True, request_timeout_ms=WRITE_TIMEOUT_MS)
    try:
        await producer.start()
        await (await hand_over(producer, Outgoing(topic, SUCCESSOR_KEY, value, partition=SERVICE_PARTITION)))
    except (KafkaError, OSError) as problem:
        raise Unavailable(f"Kafka at {settings.broker} did not take the record: {problem!r}") from problem
    finally:
        await producer.stop()
