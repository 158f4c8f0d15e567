"""Requests whose reply topic or partition does not exist: others are answered meanwhile, and each reply is counted."""

import asyncio
import json
import re
from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic

from tests.worlds.live.processes import Deployment, Worker, eventually

QUESTIONS = 300
"""More than the agent of questions has in flight."""

CHANGES = 40
"""More than the agent of changes has in flight."""

MAX_DELAY_S = 1.5
"""How much longer a request may take than behind the same requests without a reply. Behind replies that wait for their
topics in the way it was four seconds, ten behind commands."""

Headers = Callable[[Deployment, int], tuple[tuple[str, str], ...]]
"""Returns the headers of one of many requests."""

SCOPE = {"user_id": "eve"}
QUESTION = {"schema": "retrieve.v1", "scope": SCOPE, "query": "where is the box?"}
REFUSED = {**QUESTION, "top_k": 0}
"""A question that is answered with an error, so that three hundred of them take no time."""

FORGET = {"schema": "command.v1", "command": "forget", "scope": SCOPE, "arguments": {"project": True}}


async def send(producer: AIOKafkaProducer, topic: str, message: dict[str, Any], *headers: tuple[str, str]) -> None:
    """Send a request without waiting for the broker."""
    encoded = [(name, value.encode()) for name, value in headers]
    await producer.send(topic, json.dumps(message).encode(), key=b"eve", headers=encoded)


def given_up(worker: Worker) -> int:
    found = re.search(r"^modestream_replies_given_up_total (\d+)", worker.metrics(), re.MULTILINE)
    return int(found.group(1)) if found else 0


def no_reply(_deployment: Deployment, _number: int) -> tuple[tuple[str, str], ...]:
    return ()


def missing_topic(deployment: Deployment, number: int) -> tuple[tuple[str, str], ...]:
    """Return the headers of a request with a reply topic that does not exist."""
    return (("reply_to", f"{deployment.topics.replies}.missing-{number}"),)


def missing_partition(deployment: Deployment, number: int) -> tuple[tuple[str, str], ...]:
    """Return the headers of a request with a partition that the shared reply topic does not have."""
    return (("reply_to", deployment.topics.replies), ("reply_partition", str(10 + number)))


@pytest.mark.parametrize("headers", [missing_topic, missing_partition])
async def test_missing_reply_places_delay_no_other_question(shared_deployment: Deployment, headers: Headers) -> None:
    deployment, worker = shared_deployment, await shared_deployment.serving()
    given_up_before = given_up(worker)
    async with deployment.client(user_id="ana") as ana, AIOKafkaProducer(bootstrap_servers=deployment.bootstrap) as eve:
        await ana.remember("The key is under the pot.")

        async def delay(named: Headers) -> float:
            await ana.retrieve("where is the key?")
            for number in range(QUESTIONS):
                await send(eve, deployment.topics.retrieve, REFUSED, *named(deployment, number))
            await eve.flush()
            asked = monotonic()
            assert (await ana.retrieve("where is the key?")).hits
            return monotonic() - asked

        with_missing, without = await delay(headers), await delay(no_reply)
        assert with_missing < without + MAX_DELAY_S

        async def all_counted() -> bool:
            return await asyncio.to_thread(given_up, worker) == given_up_before + QUESTIONS

        await eventually(all_counted, "every reply without a place is counted", within_s=15)


async def test_missing_reply_topics_of_commands_delay_no_other_command(shared_deployment: Deployment) -> None:
    deployment = shared_deployment
    await deployment.serving()
    async with deployment.client(user_id="ana") as ana, AIOKafkaProducer(bootstrap_servers=deployment.bootstrap) as eve:
        said = (await ana.remember("The key is under the pot.")).memory_id
        assert said
        await ana.declare_mode("journal", embedder="general")

        async def delay(named: Headers, mode: str) -> float:
            for number in range(CHANGES):
                await send(eve, deployment.topics.commands, FORGET, *named(deployment, number))
            await eve.flush()
            asked = monotonic()
            await ana.set_memory_mode(said, mode)
            return monotonic() - asked

        with_missing, without = await delay(missing_topic, "journal"), await delay(no_reply, "general")
        assert with_missing < without + MAX_DELAY_S


async def test_reply_waits_for_a_topic_that_is_created_meanwhile(shared_deployment: Deployment) -> None:
    deployment = shared_deployment
    await deployment.serving()
    late = f"{deployment.topics.replies}.late"
    async with AIOKafkaProducer(bootstrap_servers=deployment.bootstrap) as eve:
        await send(eve, deployment.topics.retrieve, QUESTION, ("reply_to", late), ("correlation_id", "7"))
        await eve.flush()
        await asyncio.sleep(1)
        admin = AIOKafkaAdminClient(bootstrap_servers=deployment.bootstrap)
        await admin.start()
        await admin.create_topics([NewTopic(late, 1, 1)])
        assert await correlation(deployment, late) == b"7"
        await admin.create_partitions({late: NewPartitions(2)})
        await admin.close()
        headers = (("reply_to", late), ("reply_partition", "1"), ("correlation_id", "8"))
        await send(eve, deployment.topics.retrieve, QUESTION, *headers)
        assert await correlation(deployment, late, partition=1) == b"8"


async def correlation(deployment: Deployment, topic: str, partition: int = 0) -> bytes:
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=deployment.bootstrap, auto_offset_reset="earliest"
    ) as consumer:
        async with asyncio.timeout(10):
            while (record := await consumer.getone()).partition != partition:
                pass
    return bytes(dict(record.headers)["correlation_id"])
