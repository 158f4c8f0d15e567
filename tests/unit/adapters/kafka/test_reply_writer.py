"""Replies to slow and missing topics: what waits beside, what is given up, and what others notice of it."""

import asyncio
from typing import Any

import pytest
from aiokafka.errors import KafkaError

from schemas.messages.records import Outgoing
from streams.adapters.kafka import reply_writer
from streams.adapters.kafka.reply_writer import ReplyWriter
from streams.observability.metrics import Meters

SHARED = "memory.replies"
CALLERS = "memory.replies.app"
PROMPT_S = 0.1


class Broker:
    """A replacement for producers and lookups: topics may be missing, not writable, or lost after the lookup."""

    def __init__(self) -> None:
        self.missing: set[str] = set()
        self.lost: set[str] = set()
        self.taken: list[str] = []
        self._writable: dict[str, asyncio.Event] = {}

    def hold(self, topic: str) -> None:
        """Take records of a topic, and acknowledge none."""
        self._writable[topic] = asyncio.Event()

    def release(self, topic: str) -> None:
        self._writable[topic].set()

    def knows(self, _out: Outgoing) -> bool:
        return True

    async def has_place(self, out: Outgoing) -> bool:
        return out.topic not in self.missing

    def forget(self, topic: str) -> None:
        """Do nothing: nothing is cached."""

    async def send(self, topic: str, *_: Any, **__: Any) -> asyncio.Future[None]:
        return asyncio.ensure_future(self._take(topic))

    async def _take(self, topic: str) -> None:
        if topic in self.lost:
            raise KafkaError("no leader")
        if topic in self._writable:
            await self._writable[topic].wait()
        self.taken.append(topic)


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def meters() -> Meters:
    return Meters()


@pytest.fixture
async def writer(monkeypatch: pytest.MonkeyPatch, broker: Broker, meters: Meters) -> ReplyWriter:
    monkeypatch.setattr(reply_writer, "SLOW_AFTER_S", 0.02)
    monkeypatch.setattr(reply_writer, "MISSING_TIMEOUT_S", 0.3)
    monkeypatch.setattr(reply_writer, "LOOKUP_PAUSE_S", 0.02)
    writer = ReplyWriter({"bootstrap_servers": ["nowhere:1"]}, SHARED, meters)
    for name in ("_shared", "_callers", "_topics"):
        monkeypatch.setattr(writer, name, broker, raising=False)
    monkeypatch.setattr(writer, "_pruned", asyncio.get_running_loop().time(), raising=False)
    return writer


def reply(topic: str, value: bytes = b"{}") -> Outgoing:
    return Outgoing(topic, b"ana", value)


def given_up(meters: Meters) -> float:
    return meters.registry.get_sample_value("modestream_replies_given_up_total") or 0.0


async def test_reply_is_written_before_its_request_is_done(broker: Broker, writer: ReplyWriter) -> None:
    assert await writer.write(reply(CALLERS))
    assert broker.taken == [CALLERS]


async def test_request_does_not_wait_for_a_missing_topic(broker: Broker, writer: ReplyWriter, meters: Meters) -> None:
    broker.missing.add(CALLERS)
    async with asyncio.timeout(PROMPT_S):
        assert not await writer.write(reply(CALLERS))
    await asyncio.sleep(0.4)
    assert broker.taken == []
    assert given_up(meters) == 1


async def test_missing_topic_that_is_created_gets_its_reply(
    broker: Broker, writer: ReplyWriter, meters: Meters
) -> None:
    broker.missing.add(CALLERS)
    await writer.write(reply(CALLERS))
    broker.missing.clear()
    await asyncio.sleep(0.2)
    assert broker.taken == [CALLERS]
    assert given_up(meters) == 0


async def test_only_the_first_request_waits_for_a_slow_topic(broker: Broker, writer: ReplyWriter) -> None:
    broker.hold(CALLERS)
    assert not await writer.write(reply(CALLERS))
    async with asyncio.timeout(0.015):
        assert not await writer.write(reply(CALLERS))
    broker.release(CALLERS)
    await asyncio.sleep(0.02)
    assert broker.taken == [CALLERS, CALLERS]


async def test_request_waits_for_the_shared_topic(broker: Broker, writer: ReplyWriter) -> None:
    broker.hold(SHARED)
    writing = asyncio.ensure_future(writer.write(reply(SHARED)))
    await asyncio.sleep(PROMPT_S)
    assert not writing.done()
    broker.release(SHARED)
    assert await writing


async def test_reply_that_kafka_refuses_is_counted(broker: Broker, writer: ReplyWriter, meters: Meters) -> None:
    broker.lost.add(CALLERS)
    assert not await writer.write(reply(CALLERS))
    # On a busy machine the writer has gone on before Kafka's answer is there.
    async with asyncio.timeout(5):
        while not given_up(meters):
            await asyncio.sleep(0.01)
    assert given_up(meters) == 1


@pytest.mark.parametrize("limit", ["MAX_WAITING", "MAX_WAITING_BYTES"])
async def test_replies_beyond_the_limit_are_given_up_at_once(
    monkeypatch: pytest.MonkeyPatch, broker: Broker, writer: ReplyWriter, meters: Meters, limit: str
) -> None:
    monkeypatch.setattr(reply_writer, limit, 3)
    broker.missing |= {f"{CALLERS}{number}" for number in range(5)}
    for number in range(5):
        await writer.write(reply(f"{CALLERS}{number}", b"1"))
    assert given_up(meters) == 2
    await asyncio.sleep(0.4)
    assert given_up(meters) == 5
    await writer.write(reply(f"{CALLERS}0", b"1"))
    assert given_up(meters) == 5, "there is room again"
