"""Faust's producer of changelog records outlives a broker that is away, and refuses what Kafka never takes."""

import asyncio
from collections.abc import Callable
from typing import Any

import faust
import pytest
from aiokafka.errors import KafkaError, KafkaTimeoutError, MessageSizeTooLargeError
from faust.transport.drivers import aiokafka as driver

from streams.runtime import bursts
from streams.runtime.bursts import BurstProducer


class Broker:
    """In place of aiokafka's producer: fails with these errors, one for each call, then takes records."""

    def __init__(self, *problems: KafkaError) -> None:
        self.problems = list(problems)
        self.taken: list[bytes] = []

    async def send(self, _topic: str, value: bytes, **_: Any) -> asyncio.Future[None]:
        if self.problems:
            raise self.problems.pop(0)
        self.taken.append(value)
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        written.set_result(None)
        return written


@pytest.fixture
def producer_to(monkeypatch: pytest.MonkeyPatch) -> Callable[[Broker], BurstProducer]:
    monkeypatch.setattr(bursts, "CHANGELOG_RETRY_S", 0.0)

    def producer(broker: Broker) -> BurstProducer:
        app = faust.App("test", broker="kafka://nowhere:1", store="memory://")
        made = BurstProducer(driver.Transport([], app))
        monkeypatch.setattr(made, "_producer", broker)
        return made

    return producer


async def test_broker_that_is_away_for_long_ends_nothing(producer_to: Callable[[Broker], BurstProducer]) -> None:
    broker = Broker(KafkaTimeoutError(), KafkaTimeoutError())
    await (await producer_to(broker).send("changelog", b"k", b"v", 0, None, None))
    assert broker.taken == [b"v"]


async def test_record_that_kafka_never_takes_fails_alone(producer_to: Callable[[Broker], BurstProducer]) -> None:
    broker = Broker(MessageSizeTooLargeError("too large"))
    producer = producer_to(broker)
    refused = await producer.send("changelog", b"k", b"large", 0, None, None)
    with pytest.raises(MessageSizeTooLargeError):
        await refused
    await (await producer.send("changelog", b"k", b"small", 0, None, None))
    assert broker.taken == [b"small"]
