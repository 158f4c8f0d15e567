"""Requests are read on, each once, by another consumer where the first one asks a real broker for nothing any more."""

import asyncio
from functools import partial

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from faust.types import TP

from streams.runtime import request_reader
from streams.runtime.request_reader import RequestReader, create_request_consumer
from tests.harnesses.request_reading import Agent
from tests.worlds.live.broker import RunningBroker
from tests.worlds.live.stand_in import create_topics


@pytest.fixture
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a consumer a few seconds, and the broker less for an empty response."""
    monkeypatch.setattr(request_reader, "SILENCE_S", 4.0)
    monkeypatch.setattr(request_reader, "IDLE_POLL_TIMEOUT_MS", 200)


@pytest.mark.usefixtures("_impatient")
async def test_consumer_that_asks_for_nothing_is_replaced(live_broker: RunningBroker, prefix: str) -> None:
    await create_topics(live_broker.bootstrap, prefix)
    tp, agent = TP(f"{prefix}retrieve", 0), Agent()
    made: list[AIOKafkaConsumer] = []

    def connect() -> AIOKafkaConsumer:
        made.append(create_request_consumer({"bootstrap_servers": live_broker.bootstrap}, "read_uncommitted"))
        return made[-1]

    reader = RequestReader(connect, agent.take, lambda _: False, agent.defect)
    async with AIOKafkaProducer(bootstrap_servers=live_broker.bootstrap) as producer, asyncio.timeout(60):
        send = partial(producer.send_and_wait, tp.topic, partition=tp.partition)
        await send(b"0")
        reader.begin({tp: 0})
        await agent.has(1)
        await asyncio.sleep(5)
        assert len(made) == 1, "a broker with nothing new is not silent"
        made[0]._fetcher._fetch_task.cancel()
        await asyncio.wait(made[0]._fetcher._pending_tasks)
        await send(b"1")
        await agent.has(2)
        assert len(made) == 2
        await reader.close()
    assert agent.read == [(tp, 0, 0), (tp, 1, 1)]
    assert agent.defects == []
