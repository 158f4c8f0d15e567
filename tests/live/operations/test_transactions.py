"""Turns and questions in Kafka transactions: aborted, open and committed, at both isolation levels."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest
from aiokafka import AIOKafkaProducer
from modestream_client import MemoryClient, MemoryServiceError

from streams.adapters.kafka.clients import committed_offsets
from streams.topics import group_id
from streams.wire.partitioning import partition_of
from tests.worlds.live.broker import RunningBroker
from tests.worlds.live.processes import Deployment, Worker, deployed, eventually


@pytest.fixture(scope="module")
def read_committed(
    live_broker: RunningBroker, models: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Deployment]:
    """A deployment for the tests that kill no worker, each with a user of its own."""
    directory = tmp_path_factory.mktemp("committed")
    with deployed(live_broker.bootstrap, directory, models, ISOLATION_LEVEL="read_committed") as shared:
        yield shared


def turn(content: str, user: str) -> bytes:
    message = {"schema": "turn.v1", "scope": {"user_id": user}, "conversation_id": "c1", "role": "user"}
    return json.dumps({**message, "content": content}).encode()


@asynccontextmanager
async def transactions(deployment: Deployment) -> AsyncIterator[AIOKafkaProducer]:
    producer = AIOKafkaProducer(
        bootstrap_servers=deployment.bootstrap, transactional_id=deployment.prefix, transaction_timeout_ms=60_000
    )
    async with producer:
        yield producer


async def publish(producer: AIOKafkaProducer, deployment: Deployment, *contents: str, user: str = "u1") -> int:
    """Write turns of a user in the transaction that is open; return the last offset."""
    offset = -1
    for content in contents:
        offset = (await producer.send_and_wait(deployment.topics.turns, turn(content, user), key=user.encode())).offset
    return offset


async def texts(client: MemoryClient) -> set[str]:
    return {hit.text for hit in (await client.retrieve("where is the box?", top_k=100)).hits}


def lag(worker: Worker) -> dict[str, int]:
    return {topic: lag for topic, lag in worker.health().get("lag", {"unknown": 1}).items() if lag}


async def without_lag(worker: Worker) -> bool:
    return not await asyncio.to_thread(lag, worker)


async def test_aborted_turns_are_not_remembered(read_committed: Deployment) -> None:
    deployment, user = read_committed, "aborted"
    await deployment.serving()
    async with deployment.client(user_id=user) as client, transactions(deployment) as producer:
        async with producer.transaction():
            await publish(producer, deployment, "The box 1 is in the hall.", "The box 2 is in the hall.", user=user)
        await producer.begin_transaction()
        await publish(producer, deployment, "The box 3 is in the hall.", user=user)
        await producer.abort_transaction()
        await client.remember("The box 4 is in the hall.")
        async with producer.transaction():
            last = await publish(producer, deployment, "The box 5 is in the hall.", user=user)
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


async def test_offsets_after_gaps_are_committed(read_committed: Deployment) -> None:
    deployment, user = read_committed, "gaps"
    await deployment.serving()
    async with deployment.client(user_id=user) as client, transactions(deployment) as producer:
        await producer.begin_transaction()
        await publish(producer, deployment, *(f"The cup {number} is in the hall." for number in range(20)), user=user)
        await producer.abort_transaction()
        said = await client.remember("The box is in the hall.")

        place = deployment.topics.turns, partition_of(user.encode(), deployment.partitions)

        async def committed() -> bool:
            offsets = await committed_offsets(deployment.settings, group_id(deployment.settings))
            return said.offset is not None and offsets.get(place, 0) > said.offset

        await eventually(committed, "the offset after the gap is committed", within_s=10)


async def test_open_transaction_is_no_lag_and_ends_no_wait(read_committed: Deployment) -> None:
    deployment, user = read_committed, "open"
    worker = await deployment.serving()
    async with deployment.client(user_id=user) as client, transactions(deployment) as producer:
        await client.remember("The box 1 is in the hall.")
        await producer.begin_transaction()
        last = await publish(producer, deployment, "The box 2 is in the hall.", user=user)
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


async def test_questions_of_aborted_transactions_delay_no_other(read_committed: Deployment) -> None:
    deployment, user = read_committed, "asked"
    worker = await deployment.serving()
    question = {"schema": "retrieve.v1", "scope": {"user_id": user}, "query": "where is the box?"}
    async with deployment.client(user_id=user) as client, transactions(deployment) as producer:
        await client.remember("The box 1 is in the hall.")
        await producer.begin_transaction()
        await producer.send_and_wait(deployment.topics.retrieve, json.dumps(question).encode(), key=user.encode())
        await producer.abort_transaction()
        assert await texts(client) == {"The box 1 is in the hall."}
        await eventually(lambda: without_lag(worker), "control records are no lag", within_s=10)
