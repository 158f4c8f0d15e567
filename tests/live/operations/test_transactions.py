"""Turns and questions in Kafka transactions: aborted, open and committed, at both isolation levels."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic

import pytest
from aiokafka import AIOKafkaProducer
from modestream_client import MemoryClient, MemoryServiceError

from streams.adapters.kafka.admin import committed_offsets
from streams.topics import group_id
from tests.worlds.live.processes import Deployment, Worker, eventually

USER = "u1"


def turn(content: str) -> bytes:
    """Return a turn of the user."""
    message = {"schema": "turn.v1", "scope": {"user_id": USER}, "conversation_id": "c1", "role": "user"}
    return json.dumps({**message, "content": content}).encode()


@asynccontextmanager
async def transactions(deployment: Deployment) -> AsyncIterator[AIOKafkaProducer]:
    """Yield a transactional producer."""
    producer = AIOKafkaProducer(
        bootstrap_servers=deployment.bootstrap, transactional_id=deployment.prefix, transaction_timeout_ms=60_000
    )
    async with producer:
        yield producer


async def publish(producer: AIOKafkaProducer, deployment: Deployment, *contents: str) -> int:
    """Write turns in the transaction that is open; return the last offset."""
    offset = -1
    for content in contents:
        offset = (await producer.send_and_wait(deployment.topics.turns, turn(content), key=USER.encode())).offset
    return offset


async def texts(client: MemoryClient) -> set[str]:
    """Return the texts of all memories that are found."""
    return {hit.text for hit in (await client.retrieve("where is the box?", top_k=100)).hits}


def lag(worker: Worker) -> dict[str, int]:
    """Return the lag by topic."""
    return {topic: lag for topic, lag in worker.health().get("lag", {"unknown": 1}).items() if lag}


async def without_lag(worker: Worker) -> bool:
    """True if nothing is left to be done."""
    return not await asyncio.to_thread(lag, worker)


async def test_aborted_turns_are_not_remembered(deployment: Deployment) -> None:
    deployment.more["ISOLATION_LEVEL"] = "read_committed"
    await deployment.ready()
    async with deployment.client() as client, transactions(deployment) as producer:
        async with producer.transaction():
            await publish(producer, deployment, "The box 1 is in the hall.", "The box 2 is in the hall.")
        await producer.begin_transaction()
        await publish(producer, deployment, "The box 3 is in the hall.")
        await producer.abort_transaction()
        await client.remember("The box 4 is in the hall.")
        async with producer.transaction():
            last = await publish(producer, deployment, "The box 5 is in the hall.")
        warnings = (await client.retrieve("where is the box?", read_after=last)).warnings
        assert "not_caught_up" not in [warning.code for warning in warnings]
        assert await texts(client) == {f"The box {number} is in the hall." for number in (1, 2, 4, 5)}


async def test_aborted_turns_are_remembered_by_default(deployment: Deployment) -> None:
    await deployment.ready()
    async with deployment.client() as client, transactions(deployment) as producer:
        await producer.begin_transaction()
        await publish(producer, deployment, "The box 1 is in the hall.")

        async def found() -> bool:
            return bool(await texts(client))

        await eventually(found, "a turn of an open transaction is found", within_s=10)
        await producer.abort_transaction()
        await client.remember("The box 2 is in the hall.")
        assert len(await texts(client)) == 2


@pytest.mark.parametrize("level", ["read_uncommitted", "read_committed"])
async def test_control_records_leave_no_lag_and_hold_up_no_command(deployment: Deployment, level: str) -> None:
    deployment.more["ISOLATION_LEVEL"] = level
    worker = await deployment.ready()
    async with deployment.client() as client, transactions(deployment) as producer:
        for number in range(3):
            async with producer.transaction():
                await publish(producer, deployment, f"The box {number} is in the hall.")
            await producer.begin_transaction()
            await publish(producer, deployment, f"The cup {number} is in the hall.")
            await producer.abort_transaction()
        await eventually(lambda: without_lag(worker), "control records are no lag", within_s=10)
        asked = monotonic()
        await client.command("forget", {"project": True})
        assert monotonic() - asked < 8
        assert await texts(client) == set()
        await worker.kill()
        worker = await deployment.ready()
        await eventually(lambda: without_lag(worker), "control records are no lag after a restart", within_s=10)
        await client.remember("The lamp is in the hall.")
        assert await texts(client) == {"The lamp is in the hall."}


async def test_offsets_after_gaps_are_committed(deployment: Deployment) -> None:
    deployment.more["ISOLATION_LEVEL"] = "read_committed"
    await deployment.ready()
    async with deployment.client() as client, transactions(deployment) as producer:
        await producer.begin_transaction()
        await publish(producer, deployment, *(f"The cup {number} is in the hall." for number in range(20)))
        await producer.abort_transaction()
        said = await client.remember("The box is in the hall.")

        async def committed() -> bool:
            offsets = await committed_offsets(deployment.settings, group_id(deployment.settings))
            return said.offset is not None and said.offset + 1 in offsets.values()

        await eventually(committed, "the offset after the gap is committed", within_s=10)


async def test_open_transaction_is_no_lag_and_ends_no_wait(deployment: Deployment) -> None:
    deployment.more["ISOLATION_LEVEL"] = "read_committed"
    worker = await deployment.ready()
    async with deployment.client() as client, transactions(deployment) as producer:
        await client.remember("The box 1 is in the hall.")
        await producer.begin_transaction()
        last = await publish(producer, deployment, "The box 2 is in the hall.")
        warnings = (await client.retrieve("where is the box?", read_after=last)).warnings
        assert "not_caught_up" in [warning.code for warning in warnings]
        await eventually(lambda: without_lag(worker), "an open transaction is no lag", within_s=10)
        assert await texts(client) == {"The box 1 is in the hall."}
        with pytest.raises(MemoryServiceError) as refusal:
            await client.command("forget", {"project": True})
        assert refusal.value.code == "unavailable"
        assert "transaction" in str(refusal.value)
        await producer.commit_transaction()

        async def found() -> bool:
            return "The box 2 is in the hall." in await texts(client)

        await eventually(found, "the turn is found when it is committed", within_s=10)
        await client.command("forget", {"project": True})
        assert await texts(client) == set()


async def test_questions_of_aborted_transactions_delay_no_other(deployment: Deployment) -> None:
    deployment.more["ISOLATION_LEVEL"] = "read_committed"
    worker = await deployment.ready()
    question = {"schema": "retrieve.v1", "scope": {"user_id": USER}, "query": "where is the box?"}
    async with deployment.client() as client, transactions(deployment) as producer:
        await client.remember("The box 1 is in the hall.")
        await producer.begin_transaction()
        await producer.send_and_wait(deployment.topics.retrieve, json.dumps(question).encode(), key=USER.encode())
        await producer.abort_transaction()
        assert await texts(client) == {"The box 1 is in the hall."}
        await eventually(lambda: without_lag(worker), "control records are no lag", within_s=10)
