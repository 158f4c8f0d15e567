"""SIGTERM in the middle of batches: the worker ends soon and cleanly; the next one finishes the rest."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition

from schemas.internal.events import Embedded, Remembered
from streams.adapters.kafka.clients import committed_offsets
from streams.topics import group_id
from tests.worlds.live.flow import Flow
from tests.worlds.live.processes import Deployment

TURNS = 150

Place = tuple[str, int]


async def test_worker_stops_mid_batch_and_commits_nothing_unfinished(deployment: Deployment) -> None:
    worker = await deployment.ready()
    async with deployment.client() as client:
        flow = Flow(client)
        publishing = asyncio.create_task(flow.publish(range(TURNS)))
        await flow.until_accepted(TURNS // 3)
        assert await worker.terminate(within_s=20) == 0
        assert len(flow.accepted) < TURNS
        await assert_committed_is_finished(deployment)
        await deployment.ready()
        await publishing
        await flow.check()
        await flow.embedded()


async def test_worker_stops_while_the_vector_store_is_away(deployment: Deployment) -> None:
    deployment.more |= {"QDRANT_URL": "http://127.0.0.1:1", "QDRANT_GRPC_PORT": "1"}
    worker = await deployment.ready()
    async with deployment.client() as client:
        await client.remember("The lamp is in the hall.")
        await client.retrieve("where is the lamp?")
        assert await worker.terminate(within_s=20) == 0
        await deployment.ready()
        assert [hit.text for hit in (await client.retrieve("where is the lamp?")).hits] == ["The lamp is in the hall."]


async def assert_committed_is_finished(deployment: Deployment) -> None:
    """Check that every committed turn has its event, and every committed event its derived events."""
    topics = deployment.topics
    committed = await committed_offsets(deployment.settings, group_id(deployment.settings))
    remembered = [Remembered.model_validate_json(value) async for value in written(deployment, topics.remembered)]
    reports = [Embedded.model_validate_json(value) async for value in written(deployment, topics.embedded)]
    embedded = {each.memory_id for report in reports for each in report.each()}
    turn_ids = {event.memory.turn_id for event in remembered}
    turns = [json.loads(value)["turn_id"] async for value in written(deployment, topics.turns, below=committed)]
    assert set(turns) <= turn_ids
    asked = [json.loads(value) async for value in written(deployment, topics.remembered, below=committed)]
    assert {answer["memory"]["memory_id"] for answer in asked} <= embedded


async def written(deployment: Deployment, topic: str, below: Mapping[Place, int] | None = None) -> AsyncIterator[bytes]:
    async with AIOKafkaConsumer(bootstrap_servers=deployment.bootstrap, auto_offset_reset="earliest") as consumer:
        places = [TopicPartition(topic, partition) for partition in range(deployment.partitions)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        left = {place: ends[place] for place in places if ends[place]}
        while left:
            record = await consumer.getone(*left)
            place = TopicPartition(record.topic, record.partition)
            if below is None or record.offset < below.get((record.topic, record.partition), 0):
                yield record.value or b""
            if record.offset + 1 >= left[place]:
                del left[place]
