"""Partitions that an operator adds: those of an input topic are read and their records moved."""

import json

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions

from streams.adapters.kafka.clients import count_partitions, ensure_topics
from streams.topics import topic_config
from tests.worlds.live.processes import Deployment, eventually


async def add_partition(deployment: Deployment, topic: str) -> int:
    """Add a partition to a topic; return its number once the broker's metadata has it."""
    admin = AIOKafkaAdminClient(bootstrap_servers=deployment.bootstrap)
    await admin.start()
    try:
        await admin.create_partitions({topic: NewPartitions(deployment.partitions + 1)})
    finally:
        await admin.close()

    async def is_known() -> bool:
        return await count_partitions(deployment.settings, topic) > deployment.partitions

    await eventually(is_known, "the broker tells of the added partition")
    return deployment.partitions


async def test_turns_in_an_added_partition_are_remembered(deployment: Deployment) -> None:
    topics, settings = deployment.topics, deployment.settings
    await ensure_topics(settings, {topics.turns: topic_config(topics, topics.turns)})
    added = await add_partition(deployment, topics.turns)
    await deployment.ready()
    turn = {"schema": "turn.v1", "scope": {"user_id": "u1"}, "conversation_id": "c", "role": "user"}
    value = json.dumps({**turn, "content": "The lamp is in the hall."}).encode()
    async with AIOKafkaProducer(bootstrap_servers=deployment.bootstrap) as producer:
        await producer.send_and_wait(topics.turns, value, key=b"u1", partition=added)
    async with deployment.client() as client:

        async def found() -> bool:
            return bool((await client.retrieve("where is the lamp?")).hits)

        await eventually(found, "the turn is moved and found", within_s=20)


async def test_added_partition_of_an_internal_topic_is_refused(deployment: Deployment) -> None:
    topics, settings = deployment.topics, deployment.settings
    wanted = {topics.remembered: topic_config(topics, topics.remembered)}
    await ensure_topics(settings, wanted)
    await add_partition(deployment, topics.remembered)
    with pytest.raises(ValueError, match="was created with 3 partitions, not 2"):
        await ensure_topics(settings, wanted)
