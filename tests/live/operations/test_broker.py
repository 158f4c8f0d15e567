"""The real broker: it keeps acknowledged records and ends cleanly."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError

from tests.worlds.live.broker import RunningBroker, running_broker


@asynccontextmanager
async def admin(bootstrap: str) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def write(bootstrap: str, topic: str, values: list[bytes]) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", max_request_size=2**24) as producer:
        for value in values:
            await producer.send_and_wait(topic, value, partition=0)


async def read(bootstrap: str, topic: str, count: int) -> list[bytes]:
    limit = 2**24
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, max_partition_fetch_bytes=limit) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        await consumer.seek_to_beginning(partition)
        return [(await consumer.getone()).value or b"" for _ in range(count)]


async def test_killed_broker_has_its_records_again_and_a_stopped_one_leaves_nothing(tmp_path: Path) -> None:
    values = [b"one", b"two", b"x" * 3_000_000]
    with running_broker(tmp_path) as first:
        async with admin(first.bootstrap) as client:
            await client.create_topics([NewTopic("kept", 1, 1)])
        await write(first.bootstrap, "kept", values)
        os.kill(first.pid, signal.SIGKILL)
    with running_broker(tmp_path) as second:
        assert await read(second.bootstrap, "kept", 3) == values
        assert second.bootstrap != first.bootstrap
        assert int((tmp_path / "run" / "broker.pid").read_text()) == second.pid
    assert not (tmp_path / "run" / "broker.pid").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(second.pid, 0)


async def test_writing_to_a_missing_topic_fails_without_creating_it(live_broker: RunningBroker) -> None:
    async with AIOKafkaProducer(bootstrap_servers=live_broker.bootstrap, request_timeout_ms=2000) as producer:
        with pytest.raises(KafkaError):
            await producer.send_and_wait("mistyped", b"lost")
    async with admin(live_broker.bootstrap) as client:
        assert "mistyped" not in await client.list_topics()
