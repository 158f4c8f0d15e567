"""A record that ended three worker processes is a dead letter, and the records behind it are handled."""

import json
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from schemas.messages.records import Record
from streams.adapters.kafka.clients import ensure_topics
from streams.flow.death_counts import DeathCounts, record_name
from streams.topics import topic_config
from streams.wire.partitioning import partition_of
from tests.worlds.live.processes import Deployment


async def test_turn_that_ended_three_workers_is_a_dead_letter(deployment: Deployment) -> None:
    topics = deployment.topics
    await ensure_topics(deployment.settings, {topics.turns: topic_config(topics, topics.turns)})
    turn = {"schema": "turn.v1", "scope": {"user_id": "u1"}, "conversation_id": "c", "role": "user", "content": "Bad."}
    value, partition = json.dumps(turn).encode(), partition_of(b"u1", deployment.partitions)
    async with AIOKafkaProducer(bootstrap_servers=deployment.bootstrap) as producer:
        headers = [("reply_to", topics.replies.encode()), ("correlation_id", b"1")]
        sent = await producer.send_and_wait(topics.turns, value, b"u1", partition, headers=headers)
    bad = Record(topics.turns, partition, sent.offset, sent.timestamp, b"u1", value, ())
    for _ in range(3):
        # What a worker leaves that is killed while the record's code runs.
        DeathCounts(deployment.directory / "data" / "run" / "under-way").enter(
            record_name(f"{topics.turns}-Remember", bad)
        )
    worker = await deployment.ready()
    async with deployment.client() as client:
        await client.remember("The good turn is behind it.")
        assert [hit.text for hit in (await client.retrieve("turn")).hits] == ["The good turn is behind it."]
    assert worker.is_running
    [letter] = await read(deployment, topics.dead_letters)
    assert letter.value == value
    assert dict(letter.headers)["dead_letter_code"] == b"poison"
    [reply] = [
        record for record in await read(deployment, topics.replies) if ("correlation_id", b"1") in record.headers
    ]
    assert json.loads(reply.value)["error"]["code"] == "internal"


async def read(deployment: Deployment, topic: str) -> list[Any]:
    places = [TopicPartition(topic, partition) for partition in range(deployment.partitions)]
    async with AIOKafkaConsumer(bootstrap_servers=deployment.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(places)
        left = sum((await consumer.end_offsets(places)).values())
        return [await consumer.getone() for _ in range(left)]
