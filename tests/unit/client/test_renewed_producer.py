"""A producer whose records Kafka takes for out of order is replaced."""

import asyncio
from typing import Any, cast

import pytest
from aiokafka.errors import InvalidTimestampError, KafkaConnectionError, OutOfOrderSequenceNumber
from modestream_client.kafka.own_clients import RenewedProducer


class Producer:
    """Takes records until one is refused, and none after it, as aiokafka's does."""

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.state = "new"
        self.lost_count = False

    async def start(self) -> None:
        self.state = "started"

    def send(self, record: str) -> asyncio.Future[str]:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        if self.lost_count:
            future.set_exception(OutOfOrderSequenceNumber())
        elif record == "from the future":
            self.lost_count = True
            future.set_exception(InvalidTimestampError())
        else:
            self.log.append(record)
            future.set_result(record)
        return future


class Producers:
    """All that were made, over one log."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.made: list[Producer] = []
        self.renewed = RenewedProducer(cast("Any", self.make), self.stop)

    def make(self) -> Producer:
        self.made.append(Producer(self.log))
        return self.made[-1]

    async def stop(self, producer: Producer) -> None:
        producer.state = "stopped"

    async def send(self, record: str) -> object:
        async def hand_over(producer: Any) -> asyncio.Future[Any]:
            return cast("Producer", producer).send(record)

        return await self.renewed.send(hand_over)


async def test_records_after_a_refused_one_are_written() -> None:
    producers = Producers()
    await producers.send("a")
    with pytest.raises(InvalidTimestampError):
        await producers.send("from the future")
    # All of them meet the producer that has lost count; one successor serves all.
    await asyncio.gather(*(producers.send(key) for key in "bcd"))
    await producers.renewed.stop()
    assert producers.log == ["a", "b", "c", "d"]
    assert [producer.state for producer in producers.made] == ["stopped", "stopped"]


async def test_successor_that_does_not_start_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    producers = Producers()
    producers.made[0].lost_count = True
    with monkeypatch.context() as patch:

        async def fail(_: Producer) -> None:
            raise KafkaConnectionError

        patch.setattr(Producer, "start", fail)
        with pytest.raises(KafkaConnectionError):
            await producers.send("a")
    await producers.send("a")
    assert producers.log == ["a"]
    await producers.renewed.stop()
    assert [producer.state for producer in producers.made] == ["stopped"] * 3
