"""The producer of changelog rows outlives a broker that is away, and refuses what Kafka never takes."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import faust
import pytest
from aiokafka.errors import KafkaError, KafkaTimeoutError, MessageSizeTooLargeError, ProducerClosed
from aiokafka.structs import RecordMetadata, TopicPartition
from faust.transport.drivers import aiokafka as driver

from streams.runtime import awaited_table
from streams.runtime.awaited_table import ChangelogProducer


class Broker:
    """In place of aiokafka's producer: refuses rows with these errors, one for each call, then loses rows with these.

    Then it takes rows.
    """

    def __init__(self, *refusals: KafkaError, losses: Sequence[KafkaError] = ()) -> None:
        self._refusals, self._losses = list(refusals), list(losses)
        self.handed: list[bytes] = []

    async def send(self, topic: str, value: bytes, **_: Any) -> asyncio.Future[RecordMetadata]:
        if self._refusals:
            raise self._refusals.pop(0)
        written: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
        if self._losses:
            written.set_exception(self._losses.pop(0))
            return written
        self.handed.append(value)
        offset = len(self.handed) - 1
        written.set_result(RecordMetadata(topic, 0, TopicPartition(topic, 0), offset, None, 0, 0))
        return written


@pytest.fixture
def producer_to(monkeypatch: pytest.MonkeyPatch) -> Callable[[Broker], ChangelogProducer]:
    monkeypatch.setattr(awaited_table, "CHANGELOG_RETRY_S", 0.0)

    def producer(broker: Broker) -> ChangelogProducer:
        app = faust.App("test", broker="kafka://nowhere:1", store="memory://")
        made = ChangelogProducer(driver.Transport([], app))
        monkeypatch.setattr(made, "_producer", broker)
        return made

    return producer


ProducerTo = Callable[[Broker], ChangelogProducer]


async def test_result_is_the_offset_of_the_row(producer_to: ProducerTo) -> None:
    producer = producer_to(Broker())
    offsets = [await (await producer.send_row("changelog", 0, b"k", value)) for value in (b"v", b"w")]
    assert offsets == [0, 1]


async def test_broker_that_is_away_for_long_ends_nothing(producer_to: ProducerTo) -> None:
    broker = Broker(KafkaTimeoutError(), KafkaTimeoutError())
    await (await producer_to(broker).send_row("changelog", 0, b"k", b"v"))
    assert broker.handed == [b"v"]


async def test_row_that_was_not_written_is_handed_over_again(producer_to: ProducerTo) -> None:
    broker = Broker(losses=[KafkaTimeoutError(), KafkaTimeoutError()])
    assert await (await producer_to(broker).send_row("changelog", 0, b"k", b"v")) == 0


@pytest.mark.parametrize("refusal", [MessageSizeTooLargeError("too large"), ProducerClosed()])
async def test_refused_row_raises(producer_to: ProducerTo, refusal: KafkaError) -> None:
    producer = producer_to(Broker(refusal))
    with pytest.raises(type(refusal)):
        await (await producer.send_row("changelog", 0, b"k", b"large"))


async def test_row_that_is_refused_after_it_was_taken_raises(producer_to: ProducerTo) -> None:
    written = await producer_to(Broker(losses=[MessageSizeTooLargeError("too large")])).send_row("c", 0, b"k", b"v")
    with pytest.raises(MessageSizeTooLargeError):
        await written


async def test_row_that_kafka_never_takes_fails_alone(producer_to: ProducerTo) -> None:
    broker = Broker(losses=[MessageSizeTooLargeError("too large")])
    producer = producer_to(broker)
    refused = await producer.send_row("changelog", 0, b"k", b"large")
    await (await producer.send_row("changelog", 0, b"k", b"small"))
    with pytest.raises(MessageSizeTooLargeError):
        await refused
    assert broker.handed == [b"small"]
