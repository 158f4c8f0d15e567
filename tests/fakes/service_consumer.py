"""Consumers of the topic `service` of one deployment, with outages."""

import asyncio
from typing import Any

from aiokafka import ConsumerRecord, TopicPartition
from aiokafka.errors import KafkaConnectionError

TOPIC = "one.service"


class FakeServiceTopic:
    """`records` is the log. `refuses` is raised by each step that asks the broker; with `stalls` none is answered."""

    def __init__(self) -> None:
        self.records: list[ConsumerRecord[bytes, bytes]] = []
        self.topics = {TOPIC}
        self.refuses: Exception | None = None
        self.stalls = False
        self.changed = asyncio.Event()
        self.open = 0

    def consumer(self, **_: Any) -> "FakeServiceConsumer":
        """Return a consumer that is not started."""
        return FakeServiceConsumer(self)

    def write(self, value: bytes, timestamp_ms: int) -> None:
        """Append a successor's record."""
        key, offset = b"successor", len(self.records)
        self.records.append(
            ConsumerRecord(TOPIC, 0, offset, timestamp_ms, 1, key, value, None, len(key), len(value), ())
        )
        self.changed.set()

    def break_off(self) -> None:
        """Refuse what waits, and all later steps, until `refuses` is None."""
        self.refuses = KafkaConnectionError()
        self.changed.set()

    async def ask(self) -> None:
        """Ask the broker."""
        if self.stalls:
            await asyncio.Event().wait()
        if self.refuses is not None:
            raise self.refuses


class FakeServiceConsumer:
    """Implements what `SuccessorWatch` needs of aiokafka's consumer."""

    def __init__(self, topic: FakeServiceTopic) -> None:
        self._topic = topic
        self._next = 0

    async def start(self) -> None:
        """Connect."""
        self._topic.open += 1
        await self._topic.ask()

    async def stop(self) -> None:
        """Disconnect."""
        self._topic.open -= 1

    async def topics(self) -> set[str]:
        """Return the names that the broker tells."""
        return self._topic.topics

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Begin at the beginning."""

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at an offset."""
        self._next = offset

    async def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end of the log."""
        return dict.fromkeys(partitions, len(self._topic.records))

    async def position(self, partition: TopicPartition) -> int:
        """Return the offset of the next record."""
        return self._next

    async def getmany(self, timeout_ms: int) -> dict[TopicPartition, list[ConsumerRecord[bytes, bytes]]]:
        """Return the records up to the end."""
        await self._topic.ask()
        read, self._next = self._topic.records[self._next :], len(self._topic.records)
        return {TopicPartition(TOPIC, 0): read} if read else {}

    async def getone(self) -> ConsumerRecord[bytes, bytes]:
        """Wait for the next record."""
        await self._topic.ask()
        while len(self._topic.records) <= self._next:
            self._topic.changed.clear()
            await self._topic.changed.wait()
            await self._topic.ask()
        self._next += 1
        return self._topic.records[self._next - 1]
