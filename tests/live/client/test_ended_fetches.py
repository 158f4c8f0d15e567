"""A consumer reads on, without a gap, after an error that aiokafka does not expect while it reads."""

import asyncio
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.protocol.fetch import FetchRequest
from modestream_client.kafka.own_clients import OwnConsumer

from tests.worlds.live.broker import RunningBroker
from tests.worlds.live.stand_in import create_topics

FAILURES = 2
"""Fetches in a row that fail."""


async def test_reading_goes_on_after_an_unexpected_error(
    live_broker: RunningBroker, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic, bootstrap = f"{prefix}turns", live_broker.bootstrap
    await create_topics(bootstrap, prefix)
    async with (
        AIOKafkaProducer(bootstrap_servers=bootstrap) as producer,
        OwnConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", fetch_max_wait_ms=100) as consumer,
    ):
        for value in (b"0", b"1"):
            await producer.send_and_wait(topic, value, partition=0)
        consumer.assign([TopicPartition(topic, partition) for partition in range(2)])
        # The other one is left in aiokafka's own queue when its task ends, while it reads the empty partition.
        assert await read(consumer, 1) == [b"0"]
        failed = fail_fetches(consumer, monkeypatch)
        async with asyncio.timeout(20):
            await failed.wait()
        await producer.send_and_wait(topic, b"2", partition=1)
        assert sorted(await read(consumer, 2)) == [b"1", b"2"]


def fail_fetches(consumer: AIOKafkaConsumer, monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Let the next fetches raise what no caller expects; return an event that is set by the last of them."""
    send, failed, left = consumer._client.send, asyncio.Event(), [FAILURES]

    async def send_or_fail(node: int, request: Any, **how: Any) -> Any:
        if left[0] and isinstance(request, FetchRequest):
            left[0] -= 1
            if not left[0]:
                failed.set()
            raise LookupError("no such connection")
        return await send(node, request, **how)

    monkeypatch.setattr(consumer._client, "send", send_or_fail)
    return failed


async def read(consumer: AIOKafkaConsumer, count: int) -> list[bytes]:
    async with asyncio.timeout(20):
        return [(await consumer.getone()).value for _ in range(count)]
