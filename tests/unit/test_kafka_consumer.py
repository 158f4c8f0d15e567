"""Faust's consumer as we have it: nothing is read for agents too early, and nothing that was read is passed over.

Kafka's side, a thread of its own in Faust, is played by a class that notes what it is told.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from faust.types import TP

from streams.adapters.kafka.consumer import PatientConsumer
from streams.kafka_app import kafka_app
from streams.settings import Settings
from streams.tables import MemoryTable

TURNS = TP("memory.turns", 0)
OTHER = TP("memory.turns", 1)
CHANGELOG = TP("memory.worker-memories-changelog", 0)


class KafkaSide:
    """Gives `fetched`, and does `meanwhile` while it is asked for it."""

    def __init__(self) -> None:
        self.committed: dict[TP, int | None] = {}
        self.fetched: dict[TP, list[Any]] = {}
        self.asked: set[TP] | None = None
        self.sought: dict[TP, int] = {}
        self.from_beginning: set[TP] = set()

    def meanwhile(self) -> None:
        """Nothing."""

    async def getmany(self, active_partitions: set[TP] | None, timeout: float) -> dict[TP, list[Any]]:
        self.meanwhile()
        self.asked = active_partitions
        return self.fetched

    async def seek_to_committed(self) -> dict[TP, int | None]:
        return self.committed

    async def seek_to_beginning(self, *places: TP) -> None:
        self.from_beginning |= set(places)

    def seek(self, place: TP, offset: int) -> None:
        self.sought[place] = offset

    def assignment(self) -> set[TP]:
        return {TURNS, OTHER, CHANGELOG}


@pytest.fixture
def kafka() -> KafkaSide:
    return KafkaSide()


@pytest.fixture
def consumer(tmp_path: Path, kafka: KafkaSide) -> PatientConsumer:
    app = kafka_app(Settings(data_dir=tmp_path, _env_file=None), "test")
    MemoryTable(app)
    made = app.consumer
    assert isinstance(made, PatientConsumer)
    made._thread.thread_loop.close()
    made._thread = cast("Any", kafka)
    made._set_active_tps({TURNS, OTHER, CHANGELOG})
    return made


def active(consumer: PatientConsumer) -> set[TP]:
    return set(consumer._get_active_partitions())


def test_what_is_assigned_is_not_read_for_agents_before_it_is_resumed(consumer: PatientConsumer) -> None:
    assert active(consumer) == {CHANGELOG}


def test_agents_topics_are_read_only_once_the_flow_goes_on(consumer: PatientConsumer) -> None:
    consumer.resume_partitions({TURNS, CHANGELOG})
    assert active(consumer) == {CHANGELOG}
    consumer.resume_flow()
    assert active(consumer) == {TURNS, CHANGELOG}


def test_what_is_paused_again_is_not_resumed_with_the_flow(consumer: PatientConsumer) -> None:
    consumer.resume_partitions({TURNS, OTHER})
    consumer.pause_partitions({TURNS})
    consumer.resume_flow()
    assert active(consumer) == {OTHER, CHANGELOG}


async def test_a_fetch_keeps_to_the_partitions_that_it_was_begun_for(
    consumer: PatientConsumer, kafka: KafkaSide
) -> None:
    kafka.meanwhile = lambda: consumer.pause_partitions({CHANGELOG})  # type: ignore[method-assign]
    await consumer._getmany(consumer._get_active_partitions(), 1.0)
    assert kafka.asked == {CHANGELOG}


async def test_what_was_fetched_for_a_partition_that_is_paused_meanwhile_is_fetched_again(
    consumer: PatientConsumer, kafka: KafkaSide
) -> None:
    consumer.resume_partitions({TURNS, OTHER})
    consumer.resume_flow()
    kafka.fetched = {place: [SimpleNamespace(offset=7), SimpleNamespace(offset=8)] for place in (TURNS, OTHER)}
    kafka.meanwhile = lambda: consumer.pause_partitions({TURNS})  # type: ignore[method-assign]
    await consumer._getmany(consumer._get_active_partitions(), 1.0)
    assert kafka.sought == {TURNS: 7}


async def test_a_full_buffer_is_no_pause(consumer: PatientConsumer, kafka: KafkaSide) -> None:
    consumer.resume_partitions({TURNS})
    consumer.resume_flow()
    kafka.fetched = {TURNS: [SimpleNamespace(offset=7)]}
    kafka.meanwhile = lambda: consumer.on_buffer_full(TURNS)  # type: ignore[method-assign]
    await consumer._getmany(consumer._get_active_partitions(), 1.0)
    assert kafka.sought == {}


@pytest.mark.parametrize("nothing", [None, 0])
async def test_a_partition_without_a_commit_is_read_from_its_beginning(
    consumer: PatientConsumer, kafka: KafkaSide, nothing: int | None
) -> None:
    kafka.committed = {TURNS: nothing, OTHER: 12, CHANGELOG: None}
    assert await consumer.seek_to_committed() == kafka.committed
    assert kafka.from_beginning == {TURNS}
