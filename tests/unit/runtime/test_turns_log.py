"""The end of a partition and its delivery, read from a fake of Faust's consumer."""

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from faust.types import TP

from schemas.failures import Unavailable
from streams.runtime.turns_log import KafkaTurnsLog

TURNS, OTHER = TP("memory.turns", 0), TP("memory.turns", 1)


class FakeConsumer:
    """Partition 0 is assigned; its log ends at 10."""

    def __init__(self, position: int = 10, read: int | None = None, in_flight: tuple[int, ...] = ()) -> None:
        self._position = position
        self._read_offset = {TURNS: read}
        self._unacked_messages = [SimpleNamespace(tp=TURNS, offset=offset) for offset in in_flight]
        self._unacked_messages.append(SimpleNamespace(tp=OTHER, offset=99))

    def assignment(self) -> set[TP]:
        return {TURNS}

    async def position(self, _tp: TP) -> int:
        return self._position

    async def highwaters(self, tp: TP) -> dict[TP, int]:
        return {tp: 10}


class FailingConsumer(FakeConsumer):
    async def highwaters(self, tp: TP) -> dict[TP, int]:
        raise KafkaConnectionError


def turns_log(consumer: FakeConsumer) -> KafkaTurnsLog:
    app: Any = SimpleNamespace(consumer=consumer)
    return KafkaTurnsLog(app, TURNS.topic)


async def test_end_is_that_of_the_broker() -> None:
    assert await turns_log(FakeConsumer()).end(0) == 10


async def test_end_without_a_broker_is_unavailable() -> None:
    with pytest.raises(Unavailable, match="does not return the end"):
        await turns_log(FailingConsumer()).end(0)


async def test_partition_of_another_worker_is_unavailable() -> None:
    log = turns_log(FakeConsumer())
    assert log.is_assigned(0)
    assert not log.is_assigned(1)
    with pytest.raises(Unavailable, match="partition 1 is no longer assigned"):
        await log.end(1)


@pytest.mark.parametrize(
    ("consumer", "is_pending"),
    [
        (FakeConsumer(position=10, read=8), False),
        (FakeConsumer(position=8, read=7), True),
        (FakeConsumer(position=10, read=7), True),
        (FakeConsumer(position=10, read=9, in_flight=(8,)), True),
        (FakeConsumer(position=10, read=9, in_flight=(9,)), False),
    ],
)
async def test_a_record_is_pending_until_it_is_acknowledged(consumer: FakeConsumer, *, is_pending: bool) -> None:
    assert await turns_log(consumer).is_pending(0, 8) == is_pending
    assert not await turns_log(consumer).is_pending(0, 10)


@pytest.mark.parametrize(
    ("consumer", "is_delivered"),
    [
        (FakeConsumer(position=10, read=8), True),
        (FakeConsumer(position=9, read=8), False),
        (FakeConsumer(position=10, read=9), False),
        (FakeConsumer(position=10, read=8, in_flight=(7,)), True),
        (FakeConsumer(position=10, read=8, in_flight=(8,)), False),
        (FakeConsumer(position=10, read=None), True),
    ],
)
async def test_delivered_means_fetched_and_nothing_in_flight(consumer: FakeConsumer, *, is_delivered: bool) -> None:
    assert await turns_log(consumer).is_delivered(0, end=10, applied=8) == is_delivered
