"""A client reads the successor of its deployment over outages, and leaves no consumer behind."""

import asyncio
import logging
import time
from typing import Any, cast

import pytest
from aiokafka.errors import TopicAuthorizationFailedError
from modestream_client.kafka import successor
from modestream_client.kafka.successor import DeploymentAddress, SuccessorWatch

from tests.fakes.service_consumer import FakeServiceTopic

PAUSING = b'{"state":"pausing","topic_prefix":"two."}'
SERVING = b'{"state":"serving","topic_prefix":"two."}'


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> FakeServiceTopic:
    monkeypatch.setattr(successor, "RETRY_INTERVAL_S", 0.01)
    return FakeServiceTopic()


def watch_of(topic: FakeServiceTopic, timeout_s: float = 5.0) -> SuccessorWatch:
    return SuccessorWatch(DeploymentAddress("here:9092", "one."), None, timeout_s, cast("Any", topic.consumer))


def now_ms() -> int:
    return round(time.time() * 1000)


@pytest.mark.parametrize("breaks", ["at the start", "later"])
async def test_switch_after_an_outage_is_seen(
    topic: FakeServiceTopic, breaks: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic.write(PAUSING, now_ms() - 3_600_000)
    watch = watch_of(topic)
    if breaks == "at the start":
        topic.break_off()
    await watch.open()
    waiting = asyncio.create_task(watch.next())
    await asyncio.sleep(0)
    topic.break_off()
    await asyncio.sleep(0.05)
    topic.write(SERVING, now_ms())
    topic.refuses = None
    async with asyncio.timeout(5):
        notice = await waiting
    assert notice is not None
    assert notice.successor.state == "serving"
    assert len([one for one in caplog.records if one.levelno == logging.WARNING]) == 1
    await watch.close()
    assert topic.open == 0


async def test_record_before_an_outage_is_not_told_again(topic: FakeServiceTopic) -> None:
    topic.write(PAUSING, now_ms())
    watch = watch_of(topic)
    await watch.open()
    waiting = asyncio.create_task(watch.next())
    await asyncio.sleep(0)
    topic.break_off()
    await asyncio.sleep(0.02)
    topic.refuses = None
    await asyncio.sleep(0.05)
    assert not waiting.done()
    waiting.cancel()
    await watch.close()


@pytest.mark.parametrize("why", ["no topic", "no permission"])
async def test_topic_that_is_not_there_or_not_for_this_client_ends_the_watch(topic: FakeServiceTopic, why: str) -> None:
    if why == "no topic":
        topic.topics = set()
    else:
        topic.write(SERVING, now_ms())
        topic.refuses = TopicAuthorizationFailedError()
    watch = watch_of(topic)
    await watch.open()
    async with asyncio.timeout(5):
        assert await watch.next() is None
    assert topic.open == 0


async def test_stalled_topic_takes_no_longer_than_its_limit(topic: FakeServiceTopic) -> None:
    topic.stalls = True
    watch = watch_of(topic, timeout_s=0.02)
    async with asyncio.timeout(2):
        await watch.open()
    assert (watch.last, topic.open) == (None, 0)
    await watch.close()


async def test_cancelled_opening_disconnects(topic: FakeServiceTopic) -> None:
    topic.stalls = True
    opening = asyncio.create_task(watch_of(topic).open())
    await asyncio.sleep(0.01)
    opening.cancel()
    await asyncio.wait({opening})
    assert topic.open == 0


async def test_pause_is_counted_from_its_arrival_whatever_the_own_clock_says(topic: FakeServiceTopic) -> None:
    watch = watch_of(topic)
    await watch.open()
    topic.write(PAUSING, now_ms() - 3_600_000)
    notice = await watch.next()
    assert notice is not None
    assert notice.pauses_until - time.monotonic() > 50
    await watch.close()
