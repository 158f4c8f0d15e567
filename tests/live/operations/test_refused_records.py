"""Records that Kafka refuses for good: their sender gets an error, and the records behind them are not delayed."""

import asyncio
import json

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from schemas.messages.records import Outgoing
from streams.adapters.kafka.clients import ensure_topics
from streams.adapters.kafka.publisher import KafkaPublisher
from streams.observability.metrics import Meters
from streams.settings import Settings
from streams.topics import MAX_INPUT_BYTES, topic_config, topics_with_prefix
from streams.wire.dead_letters import size_of
from streams.wire.partitioning import partition_of
from tests.worlds.live.broker import RunningBroker
from tests.worlds.live.processes import Deployment


async def test_publisher_goes_on_after_a_record_that_the_broker_refuses(
    live_broker: RunningBroker, prefix: str
) -> None:
    settings = Settings(broker=live_broker.bootstrap, topic_prefix=prefix, partitions=1)
    topics = topics_with_prefix(prefix)
    await ensure_topics(settings, {topic: topic_config(topics, topic) for topic in (topics.turns, topics.dead_letters)})
    publisher = KafkaPublisher(settings.kafka_connection, f"{prefix}replies", topics.dead_letters, Meters())
    await publisher.start()
    try:
        sent = [
            await publisher.send(Outgoing(topics.turns, b"u1", value)) for value in (b"x" * (MAX_INPUT_BYTES + 1), b"2")
        ]
        await asyncio.wait_for(asyncio.gather(*sent), 20)
        await asyncio.wait_for(await publisher.send(Outgoing(topics.turns, b"u1", b"3")), 20)
    finally:
        await publisher.stop()
    async with AIOKafkaConsumer(bootstrap_servers=live_broker.bootstrap) as consumer:
        turns, letters = TopicPartition(topics.turns, 0), TopicPartition(topics.dead_letters, 0)
        ends = await consumer.end_offsets([turns, letters])
    assert ends[turns] == 2
    assert ends[letters] == 1


async def test_largest_turn_in_a_wrong_partition_delays_none(deployment: Deployment) -> None:
    await deployment.ready()
    turn = {"schema": "turn.v1", "scope": {"user_id": "u1"}, "conversation_id": "c", "role": "user", "content": "x"}
    topic, right = deployment.topics.turns, partition_of(b"u1", deployment.settings.partitions)
    value = json.dumps(turn).encode()
    padding = MAX_INPUT_BYTES - size_of(Outgoing(topic, b"u1", value)) - 20
    async with AIOKafkaProducer(bootstrap_servers=deployment.bootstrap, max_request_size=2**24) as producer:
        for wrong in range(deployment.settings.partitions):
            if wrong != right:
                await producer.send_and_wait(topic, value + b" " * padding, key=b"u1", partition=wrong)
    async with deployment.client() as client:
        for number in range(deployment.settings.partitions * 2):
            await client.remember(f"Number {number} is said.", user_id=f"v{number}")
    letters = [
        TopicPartition(deployment.topics.dead_letters, number) for number in range(deployment.settings.partitions)
    ]
    async with AIOKafkaConsumer(bootstrap_servers=deployment.bootstrap) as consumer:
        ends = await consumer.end_offsets(letters)
    assert sum(ends.values()) == deployment.settings.partitions - 1
