"""Partition assignment: topics of agents are read only after the seek, and no record is skipped.

A fake in place of Faust's consumer thread records its calls.
"""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import ConsumerRecord
from faust.types import TP

from streams.runtime.consumer import SafeAssignmentConsumer
from streams.runtime.delivery import Inbox
from streams.runtime.kafka_app import create_kafka_app
from streams.runtime.partition_assignor import SafeAssignmentApp
from streams.settings import Settings
from streams.tables.memory_tables import MemoryTable

EVENTS = TP("memory.learned", 0)
OTHER = TP("memory.learned", 1)
REQUESTS = TP("memory.retrieve", 1)
CHANGELOG = TP("memory.worker-memories-changelog", 0)


class KafkaSide:
    """Returns `fetched`, and calls `meanwhile` during the fetch."""

    def __init__(self) -> None:
        self.committed: dict[TP, int | None] = {}
        self.fetched: dict[TP, list[Any]] = {}
        self.fetched_partitions: set[TP] | None = None
        self.sought: dict[TP, int] = {}
        self.from_beginning: set[TP] = set()
        self.paused: set[TP] = set()
        self.position = 5

    def meanwhile(self) -> None:
        """Do nothing."""

    async def getmany(self, active_partitions: set[TP] | None, timeout: float) -> dict[TP, list[Any]]:
        self.meanwhile()
        self.fetched_partitions = active_partitions
        return self.fetched

    async def seek_to_committed(self) -> dict[TP, int | None]:
        return self.committed

    async def seek_to_beginning(self, *offsets: TP) -> None:
        self.from_beginning |= set(offsets)

    async def pause_fetching(self, tps: Iterable[TP]) -> None:
        self.paused |= set(tps)

    def highwater(self, tp: TP) -> int:
        return 5

    def next_offset(self, tp: TP) -> int:
        return self.position

    def seek(self, tp: TP, offset: int) -> None:
        self.sought[tp] = offset

    def assignment(self) -> set[TP]:
        return {EVENTS, OTHER, CHANGELOG, REQUESTS}


class FakeRequestReader:
    """In place of the request reader: records its partitions."""

    def __init__(self) -> None:
        self.offsets: dict[TP, int | None] = {}

    def begin(self, offsets: Mapping[TP, int | None]) -> None:
        self.offsets = dict(offsets)

    def leave(self, offsets: Collection[TP]) -> None:
        self.offsets = {tp: expected for tp, expected in self.offsets.items() if tp not in offsets}

    def highwater(self, tp: TP) -> int | None:
        return 40 if tp in self.offsets else None

    def written_after(self, tp: TP, offset: int) -> float:
        return 100.0 + offset


@pytest.fixture
def kafka() -> KafkaSide:
    return KafkaSide()


@pytest.fixture
def request_reader() -> FakeRequestReader:
    return FakeRequestReader()


@pytest.fixture
def consumer(tmp_path: Path, kafka: KafkaSide, request_reader: FakeRequestReader) -> SafeAssignmentConsumer:
    app = create_kafka_app(Settings(data_dir=tmp_path, _env_file=None), "test")
    MemoryTable(app)
    made = app.consumer
    assert isinstance(made, SafeAssignmentConsumer)
    made._thread.thread_loop.close()
    made._thread = cast("Any", kafka)
    made._readers = {frozenset({REQUESTS.topic}): cast("Any", request_reader)}
    made._set_active_tps({EVENTS, OTHER, CHANGELOG, REQUESTS})
    return made


@pytest.fixture
def inbox(consumer: SafeAssignmentConsumer) -> Inbox:
    """The inbox of the only agent of requests."""
    made = Inbox()
    cast("SafeAssignmentApp", consumer.app).inboxes[REQUESTS.topic].append(made)
    return made


async def test_records_that_wait_in_an_inbox_are_under_way_until_a_rebalance(
    consumer: SafeAssignmentConsumer, inbox: Inbox
) -> None:
    consumer._committed_offset[REQUESTS] = 7
    await consumer._deliver(REQUESTS, consumer_record(7), 7)
    assert [message.offset for message in consumer._unacked_messages] == [7]
    inbox.clear()
    consumer._clean_unacked_messages()
    assert not consumer._unacked_messages


def active(consumer: SafeAssignmentConsumer) -> set[TP]:
    return set(consumer._get_active_partitions())


def test_assigned_partitions_of_agents_are_not_read_before_resume(consumer: SafeAssignmentConsumer) -> None:
    assert active(consumer) == {CHANGELOG}


def test_topics_of_agents_are_read_only_after_resume_flow(consumer: SafeAssignmentConsumer) -> None:
    consumer.resume_partitions({EVENTS, CHANGELOG})
    assert active(consumer) == {CHANGELOG}
    consumer.resume_flow()
    assert active(consumer) == {EVENTS, CHANGELOG}


def test_paused_partitions_are_not_read_after_resume_flow(consumer: SafeAssignmentConsumer) -> None:
    consumer.resume_partitions({EVENTS, OTHER})
    consumer.pause_partitions({EVENTS})
    consumer.resume_flow()
    assert active(consumer) == {OTHER, CHANGELOG}


async def test_fetch_keeps_to_its_partitions(consumer: SafeAssignmentConsumer, kafka: KafkaSide) -> None:
    kafka.meanwhile = lambda: consumer.pause_partitions({CHANGELOG})  # type: ignore[method-assign]
    await consumer._getmany(consumer._get_active_partitions(), 1.0)
    assert kafka.fetched_partitions == {CHANGELOG}


async def test_records_of_a_partition_paused_during_the_fetch_are_refetched(
    consumer: SafeAssignmentConsumer, kafka: KafkaSide
) -> None:
    consumer.resume_partitions({EVENTS, OTHER})
    consumer.resume_flow()
    kafka.fetched = {tp: [SimpleNamespace(offset=7), SimpleNamespace(offset=8)] for tp in (EVENTS, OTHER)}
    kafka.meanwhile = lambda: consumer.pause_partitions({EVENTS})  # type: ignore[method-assign]
    await consumer._getmany(consumer._get_active_partitions(), 1.0)
    assert kafka.sought == {EVENTS: 7}


async def test_full_buffer_causes_no_refetch(consumer: SafeAssignmentConsumer, kafka: KafkaSide) -> None:
    consumer.resume_partitions({EVENTS})
    consumer.resume_flow()
    kafka.fetched = {EVENTS: [SimpleNamespace(offset=7)]}
    kafka.meanwhile = lambda: consumer.on_buffer_full(EVENTS)  # type: ignore[method-assign]
    await consumer._getmany(consumer._get_active_partitions(), 1.0)
    assert kafka.sought == {}


@pytest.mark.parametrize("nothing", [None, 0])
async def test_partition_without_a_commit_is_read_from_its_beginning(
    consumer: SafeAssignmentConsumer, kafka: KafkaSide, nothing: int | None
) -> None:
    kafka.committed = {EVENTS: nothing, OTHER: 12, CHANGELOG: None}
    assert await consumer.seek_to_committed() == kafka.committed
    assert kafka.from_beginning == {EVENTS}


async def test_requests_are_read_by_the_request_reader_from_the_committed_offset(
    consumer: SafeAssignmentConsumer, kafka: KafkaSide, request_reader: FakeRequestReader
) -> None:
    consumer.resume_partitions({EVENTS, REQUESTS})
    kafka.committed = {EVENTS: 3, REQUESTS: 12}
    await consumer.perform_seek()
    assert request_reader.offsets == {}
    consumer.resume_flow()
    assert request_reader.offsets == {REQUESTS: 12}
    assert active(consumer) == {EVENTS, CHANGELOG}
    assert kafka.paused == {REQUESTS}


async def test_request_reader_leaves_paused_partitions(
    consumer: SafeAssignmentConsumer, kafka: KafkaSide, request_reader: FakeRequestReader
) -> None:
    consumer.resume_partitions({REQUESTS})
    consumer.resume_flow()
    consumer.pause_partitions({EVENTS, REQUESTS})
    assert request_reader.offsets == {}


async def test_partitions_of_an_agent_that_must_catch_up_are_full(
    consumer: SafeAssignmentConsumer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.runtime.delivery.MAX_WAITING_EVENTS", 2)
    consumer._committed_offset[REQUESTS] = 7
    for offset, full in ((7, False), (8, True)):
        await consumer._deliver(REQUESTS, consumer_record(offset), offset)
        assert consumer._is_full(REQUESTS) == full
    await anext(inbox)
    assert not consumer._is_full(REQUESTS)


def test_highwater_of_requests_comes_from_the_request_reader(consumer: SafeAssignmentConsumer) -> None:
    assert consumer.highwater(REQUESTS) == 0
    assert consumer.highwater(EVENTS) == 5
    consumer.resume_partitions({REQUESTS})
    consumer.resume_flow()
    assert consumer.highwater(REQUESTS) == 40


def test_partition_without_a_position_is_no_error(consumer: SafeAssignmentConsumer) -> None:
    consumer.verify_event_path(1e9, EVENTS)


async def test_commit_passes_offsets_without_a_record(consumer: SafeAssignmentConsumer, inbox: Inbox) -> None:
    consumer._committed_offset[REQUESTS] = 7
    await consumer._deliver(REQUESTS, consumer_record(12), 7)
    read = (await anext(inbox)).record
    assert read.offset == 12
    assert read.written_after_s == 112.0
    consumer._acked[REQUESTS].append(12)
    assert consumer._new_offset(REQUESTS) == 13


async def test_commit_stops_before_requests_in_flight(consumer: SafeAssignmentConsumer, inbox: Inbox) -> None:
    consumer._committed_offset[REQUESTS] = 7
    for expected, offset in ((7, 7), (8, 8), (9, 9)):
        await consumer._deliver(REQUESTS, consumer_record(offset), expected)
    consumer._acked[REQUESTS].append(7)
    assert consumer._new_offset(REQUESTS) == 8


def consumer_record(offset: int) -> ConsumerRecord[bytes, bytes]:
    return ConsumerRecord(REQUESTS.topic, REQUESTS.partition, offset, 0, 0, b"k", b"{}", None, 1, 2, ())


def test_lag_is_the_distance_of_commit_and_end(consumer: SafeAssignmentConsumer, kafka: KafkaSide) -> None:
    kafka.position = 3
    assert consumer.lag(EVENTS) == 5
    consumer._committed_offset[EVENTS] = 3
    assert consumer.lag(EVENTS) == 2
    consumer._committed_offset[EVENTS] = 6
    assert consumer.lag(EVENTS) == 0


def test_lag_remains_while_a_record_is_not_acknowledged(consumer: SafeAssignmentConsumer) -> None:
    consumer._committed_offset[EVENTS] = 3
    message: Any = SimpleNamespace(tp=EVENTS, offset=3)
    consumer._unacked_messages = cast("Any", [message])
    assert consumer.lag(EVENTS) == 2


def test_control_records_at_the_end_are_no_lag(consumer: SafeAssignmentConsumer) -> None:
    consumer._committed_offset[EVENTS] = 3
    message: Any = SimpleNamespace(tp=OTHER, offset=3)
    consumer._unacked_messages = cast("Any", [message])
    assert consumer.lag(EVENTS) == 0


def test_topics_of_every_turn_and_of_waiting_callers_are_not_read_by_faust(consumer: SafeAssignmentConsumer) -> None:
    requests = ("turns", "retrieve", "commands", "changes", "jobs", "consolidate", "remembered", "embedded")
    assert {topic for topics in consumer._dedicated for topic in topics} == {f"memory.{name}" for name in requests}
