"""A worker that is paused for longer than its session writes nothing when it goes on."""

import asyncio

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from streams.topics import changelog
from tests.worlds.live.processes import Deployment

TURNS = 200

PATIENCE_S = 240.0
"""The longest wait for one thing, on a machine with more work than cores; alone, the whole test takes a minute.

What takes longer fails, and so does a worker that ends, at once.
"""


@pytest.mark.timeout(4 * PATIENCE_S)
async def test_paused_worker_brings_no_forgotten_memory_back(deployment: Deployment) -> None:
    # Two workers need a store that both may use; with none that answers, memories are found by words.
    deployment.more |= {"QDRANT_URL": "http://127.0.0.1:1", "QDRANT_GRPC_PORT": "1"}
    first = await deployment.ready("first", PATIENCE_S)
    async with deployment.client(timeout=PATIENCE_S) as client:
        publishing = [asyncio.create_task(client.remember(f"Number {number} is said.")) for number in range(TURNS)]
        await asyncio.wait(publishing, return_when=asyncio.FIRST_COMPLETED)
        first.pause()
        second = await deployment.ready("second", PATIENCE_S)
        await asyncio.gather(*publishing)
        assert (await client.command("forget", {"user": True}))["forgotten"] == TURNS
        first.resume()
        assert await first.ended(within_s=PATIENCE_S) == 70
        assert await second.served_partitions()
        assert (await client.retrieve("which number is said?", top_k=100)).hits == ()
    assert await remembered(deployment) == []


async def remembered(deployment: Deployment) -> list[bytes]:
    """Return the ids of the memories that the changelog has at its end, without forgotten ones."""
    topic = changelog(deployment.settings, "memories")
    last: dict[bytes, bytes] = {}
    async with AIOKafkaConsumer(bootstrap_servers=deployment.bootstrap, auto_offset_reset="earliest") as consumer:
        places = [TopicPartition(topic, partition) for partition in range(deployment.partitions)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        for place in places:
            while await consumer.position(place) < ends[place]:
                record = await consumer.getone(place)
                last[record.key] = record.value
    return [key for key, value in last.items() if not value.startswith(b"forgotten")]
