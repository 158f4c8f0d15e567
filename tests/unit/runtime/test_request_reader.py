"""Requests are read once, in order, from the given offsets, and not after `leave`."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import chain, repeat
from typing import Any, cast

import pytest
from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaConnectionError, KafkaError
from faust.types import TP

from streams.runtime import request_reader
from streams.runtime.request_reader import RequestReader
from tests.harnesses.request_reading import Agent

FIRST, SECOND = TP("fetched", 0), TP("fetched", 1)


class Kafka:
    """A consumer over a log in memory. Each call that can fail raises the next of `problems` first."""

    _isolation_level = "read_uncommitted"

    def __init__(self, problems: Iterable[Exception] = ()) -> None:
        self.log: dict[TopicPartition, list[int]] = {}
        self.positions: dict[TopicPartition, int] = {}
        self.problems = list(problems)
        self.fetched: list[set[TP]] = []
        self.stopped = 0
        self.poll_s = 0.02
        self.silent: set[TopicPartition] = set()
        """Partitions that are no longer asked for."""
        self._written = asyncio.Event()

    def write(self, tp: TP, *offsets: int) -> None:
        self.log.setdefault(TopicPartition(*tp), []).extend(offsets)
        self._written.set()

    async def start(self) -> None:
        self._fail()

    async def stop(self) -> None:
        self.stopped += 1

    def assign(self, tps: list[TopicPartition]) -> None:
        self.positions = dict.fromkeys(tps, 0)

    def assignment(self) -> set[TopicPartition]:
        return set(self.positions)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self.positions[tp] = offset

    def highwater(self, tp: TopicPartition) -> int | None:
        return self.log[tp][-1] + 1 if tp in self.log else None

    def last_poll_timestamp(self, tp: TopicPartition) -> int | None:
        return None if tp not in self.log else 0 if tp in self.silent else len(self.fetched)

    async def getmany(self, *tps: TopicPartition, timeout_ms: int) -> dict[TopicPartition, list[Any]]:
        self._fail()
        self.fetched.append({TP(*tp) for tp in tps})
        while not (ready := {tp: read for tp in tps if tp not in self.silent and (read := self._new(tp))}):
            self._written.clear()
            try:
                await asyncio.wait_for(self._written.wait(), self.poll_s)
            except TimeoutError:
                return {}
        for tp, offsets in ready.items():
            self.positions[tp] = offsets[-1] + 1
        return {tp: [_record(tp, offset) for offset in offsets] for tp, offsets in ready.items()}

    def _new(self, tp: TopicPartition) -> list[int]:
        return [offset for offset in self.log.get(tp, []) if offset >= self.positions[tp]]

    def _fail(self) -> None:
        if self.problems:
            raise self.problems.pop(0)


def _record(tp: TopicPartition, offset: int) -> ConsumerRecord[bytes, bytes]:
    return ConsumerRecord(tp.topic, tp.partition, offset, 0, 0, None, b"", None, 0, 0, ())


@asynccontextmanager
async def reading(kafka: Kafka, agent: Agent, later: Kafka | None = None) -> AsyncIterator[RequestReader]:
    """Read with one consumer; `later` is that of each connection after the first one."""
    consumers = chain((kafka,), repeat(later or kafka))
    reader = RequestReader(lambda: cast("Any", next(consumers)), agent.take, agent.full.__contains__, agent.defect)
    try:
        yield reader
    finally:
        await reader.close()


async def test_partitions_are_read_in_order_from_their_offsets() -> None:
    kafka, agent = Kafka(), Agent()
    kafka.write(FIRST, 0, 1, 2, 3)
    kafka.write(SECOND, 0, 1)
    async with reading(kafka, agent) as reader:
        reader.begin({FIRST: 2, SECOND: None})
        await agent.has(4)
        kafka.write(FIRST, 4)
        await agent.has(5)
    assert [each for each in agent.read if each[0] == FIRST] == [(FIRST, 2, 2), (FIRST, 3, 3), (FIRST, 4, 4)]
    assert [entry for entry in agent.read if entry[0] == SECOND] == [(SECOND, 0, None), (SECOND, 1, 1)]


async def test_record_after_a_gap_has_the_expected_offset() -> None:
    kafka, agent = Kafka(), Agent()
    kafka.write(FIRST, 5, 9)
    async with reading(kafka, agent) as reader:
        reader.begin({FIRST: 5})
        await agent.has(2)
    assert agent.read == [(FIRST, 5, 5), (FIRST, 9, 6)]


async def test_records_of_a_partition_are_not_delivered_after_leave() -> None:
    kafka, agent = Kafka(), Agent(busy=True)
    kafka.write(FIRST, 0, 1)
    async with reading(kafka, agent) as reader:
        reader.begin({FIRST: 0, SECOND: 0})
        while not kafka.positions.get(TopicPartition(*FIRST)):
            await asyncio.sleep(0)
        reader.leave({FIRST})
        await agent.rests()
        kafka.write(SECOND, 0)
        await agent.has(1)
    assert agent.read == [(SECOND, 0, 0)]


async def test_undelivered_records_are_read_again() -> None:
    kafka, agent = Kafka(), Agent()
    kafka.write(FIRST, 0)
    async with reading(kafka, agent) as reader:
        reader.begin({FIRST: 0, SECOND: 0})
        await agent.has(1)
        agent.busy = True
        kafka.write(FIRST, 1, 2)
        while kafka.positions[TopicPartition(*FIRST)] < 3:
            await asyncio.sleep(0)
        reader.leave({SECOND})
        await agent.rests()
        await agent.has(3)
    assert agent.read == [(FIRST, 0, 0), (FIRST, 1, 1), (FIRST, 2, 2)]


async def test_partition_of_a_full_agent_is_not_fetched() -> None:
    kafka, agent = Kafka(), Agent(full={FIRST})
    kafka.write(FIRST, 0)
    kafka.write(SECOND, 0)
    async with reading(kafka, agent) as reader:
        reader.begin({FIRST: 0, SECOND: 0})
        await agent.has(1)
        agent.full.clear()
        kafka.write(SECOND, 1)
        await agent.has(3)
    assert kafka.fetched[0] == {SECOND}
    assert {tp for tp, *_ in agent.read} == {FIRST, SECOND}


async def test_outages_are_retried_when_connecting_and_reading() -> None:
    kafka, agent = Kafka([KafkaConnectionError(), KafkaConnectionError()]), Agent()
    kafka.write(FIRST, 0)
    async with reading(kafka, agent) as reader:
        reader.begin({FIRST: 0})
        await agent.has(1)
        kafka.problems.append(KafkaError())
        kafka.write(FIRST, 1)
        await agent.has(2)
    assert agent.read == [(FIRST, 0, 0), (FIRST, 1, 1)]
    assert agent.defects == []


async def test_consumer_without_responses_for_a_partition_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_reader, "SILENCE_S", 2.0)
    broken, healthy, agent = Kafka(), Kafka([KafkaConnectionError()]), Agent()
    for kafka in (broken, healthy):
        kafka.write(FIRST, 0)
        kafka.write(SECOND, 0)
    async with reading(broken, agent, healthy) as reader:
        reader.begin({FIRST: 0, SECOND: 0})
        await agent.has(2)
        broken.silent.add(TopicPartition(*FIRST))
        healthy.write(FIRST, 1)
        assert reader.highwater(FIRST) == 1, "the end that was reported last"
        await agent.has(3)
    assert sorted(agent.read) == [(FIRST, 0, 0), (FIRST, 1, 1), (SECOND, 0, 0)]
    assert agent.defects == []
    assert broken.stopped == 1


async def test_full_agent_is_no_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_reader, "SILENCE_S", 0.05)
    monkeypatch.setattr(request_reader, "BACKPRESSURE_POLL_TIMEOUT_MS", 10)
    kafka, agent = Kafka(), Agent(full={FIRST})
    kafka.write(FIRST, 0)
    async with reading(kafka, agent) as reader:
        reader.begin({FIRST: 0})
        await asyncio.sleep(0.2)
        assert kafka.stopped == 0
        agent.full.clear()
        await agent.has(1)
    assert agent.read == [(FIRST, 0, 0)]


async def test_other_errors_are_reported_as_defects() -> None:
    kafka, agent = Kafka([KafkaConnectionError(), ZeroDivisionError()]), Agent()
    async with reading(kafka, agent) as reader:
        reader.begin({FIRST: 0})
        await agent.has(1)
    assert [type(problem) for problem in agent.defects] == [ZeroDivisionError]


async def test_highwater_is_known_while_a_partition_is_read() -> None:
    kafka, agent = Kafka(), Agent()
    kafka.write(FIRST, 0, 1)
    async with reading(kafka, agent) as reader:
        assert reader.highwater(FIRST) is None
        reader.begin({FIRST: 0})
        await agent.has(2)
        assert reader.highwater(FIRST) == 2
        assert reader.highwater(SECOND) is None


async def test_close_cancels_delivery_and_disconnects() -> None:
    kafka, agent = Kafka(), Agent(busy=True)
    kafka.write(FIRST, 0)
    async with reading(kafka, agent) as reader:
        reader.begin({FIRST: 0})
        while not kafka.positions.get(TopicPartition(*FIRST)):
            await asyncio.sleep(0)
    assert kafka.stopped == 1
    assert agent.read == []
