"""Events are published in order, and an unavailable topic does not delay others."""

import asyncio
from typing import Any

import pytest
from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from schemas.messages.records import Outgoing
from streams.adapters.kafka import publisher
from streams.adapters.kafka.publisher import KafkaPublisher
from streams.observability.metrics import Meters


class Broker:
    """A replacement for aiokafka's producer that rejects some topics."""

    def __init__(self) -> None:
        self.refused: set[str] = set()
        self.too_small: set[str] = set()
        self.taken: list[tuple[str, bytes | None]] = []

    async def send(self, topic: str, value: bytes | None, **_: Any) -> asyncio.Future[None]:
        if topic in self.refused:
            raise KafkaError("no such topic")
        if topic in self.too_small:
            raise MessageSizeTooLargeError("too large")
        self.taken.append((topic, value))
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        written.set_result(None)
        return written


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def sending(monkeypatch: pytest.MonkeyPatch, broker: Broker) -> KafkaPublisher:
    monkeypatch.setattr(publisher, "PRODUCE_RETRY_S", 0.0)
    sending = KafkaPublisher({"bootstrap_servers": ["nowhere:1"]}, "memory.replies", "memory.dead-letters", Meters())
    monkeypatch.setattr(sending, "_events", broker, raising=False)
    return sending


async def test_records_of_one_topic_are_written_in_send_order(broker: Broker, sending: KafkaPublisher) -> None:
    values = [b"%d" % number for number in range(20)]
    safe = []
    for value in values:
        safe.append(await sending.send(Outgoing("learned", b"k", value)))
        await asyncio.sleep(0.002)
    await asyncio.gather(*safe)
    assert [value for _, value in broker.taken] == values


async def test_unhurried_record_waits_for_the_next_one_that_a_caller_waits_for(
    broker: Broker, sending: KafkaPublisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publisher, "UNHURRIED_INTERVAL_S", 3600.0)
    await asyncio.wait_for(await sending.send(Outgoing("learned", b"k", b"1", is_unhurried=True)), 10)
    waiting = asyncio.ensure_future(await sending.send(Outgoing("learned", b"k", b"2", is_unhurried=True)))
    await asyncio.sleep(0.05)
    assert not waiting.done(), "after the first one of a pause"
    await asyncio.wait_for(await sending.send(Outgoing("learned", b"k", b"3")), 10)
    await asyncio.wait_for(waiting, 10)
    assert [value for _, value in broker.taken] == [b"1", b"2", b"3"]


async def test_blocked_topic_delays_no_other_and_is_written_later(broker: Broker, sending: KafkaPublisher) -> None:
    broker.refused.add("lost")
    later = asyncio.ensure_future(await sending.send(Outgoing("lost", b"k", b"1")))
    await asyncio.wait_for(await sending.send(Outgoing("learned", b"k", b"2")), 10)
    assert broker.taken == [("learned", b"2")]
    assert not later.done()
    broker.refused.clear()
    await later
    assert broker.taken[-1] == ("lost", b"1")


async def test_record_that_the_broker_refuses_is_a_dead_letter_and_delays_none(
    broker: Broker, sending: KafkaPublisher
) -> None:
    broker.too_small.add("small")
    refused = await sending.send(Outgoing("small", b"k", b"1"))
    following = await sending.send(Outgoing("learned", b"k", b"2"))
    await asyncio.wait_for(asyncio.gather(refused, following), 10)
    assert broker.taken == [("learned", b"2"), ("memory.dead-letters", b"1")]
