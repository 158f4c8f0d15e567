"""The end of a topic's partitions in Kafka, and the progress of Faust's consumer."""

import asyncio

import faust
from aiokafka.errors import KafkaError
from faust.types import TP

from schemas.failures import Unavailable

OPEN_TRANSACTION_TIMEOUT_S = 2.0
"""Time limit of waiting for the end of open transactions, while other commands of this worker wait."""

OPEN_TRANSACTION_POLL_S = 0.1


class KafkaTurnsLog:
    """Implements `streams.flow.turns_log.TurnsLog` for the partitions of this worker."""

    def __init__(self, app: faust.App, topic: str) -> None:
        self._app = app
        self._topic = topic

    async def end(self, partition: int) -> int:
        """Return the offset after the last readable record. Asks the broker, as the consumer may be behind."""
        tp = self._assigned(partition)
        try:
            return (await self._app.consumer.highwaters(tp))[tp]
        except (KafkaError, KeyError) as problem:
            raise Unavailable(f"Kafka does not return the end of {self._topic}: {problem!r}") from problem

    async def end_with_transactions(self, partition: int) -> int:
        """Return the offset after the last written record, when no open transaction hides one before it."""
        tp = self._assigned(partition)
        if not self._app.consumer.hides_open_transactions:  # type: ignore[attr-defined]
            return await self.end(partition)
        try:
            end: int = await self._app.consumer.written_end(tp)  # type: ignore[attr-defined]
        except KafkaError as problem:
            raise Unavailable(f"Kafka does not return the end of {self._topic}: {problem!r}") from problem
        waited = 0.0
        while await self.end(partition) < end:
            if waited >= OPEN_TRANSACTION_TIMEOUT_S:
                raise Unavailable(f"a transaction is open on {self._topic}, and hides turns before this command")
            waited += OPEN_TRANSACTION_POLL_S
            await asyncio.sleep(OPEN_TRANSACTION_POLL_S)
        return end

    def is_assigned(self, partition: int) -> bool:
        return TP(self._topic, partition) in self._app.consumer.assignment()

    async def is_delivered(self, partition: int, end: int, applied: int) -> bool:
        tp, consumer = self._assigned(partition), self._app.consumer
        fetched = await consumer.position(tp)
        last: int | None = consumer._read_offset.get(tp)  # type: ignore[attr-defined]  # noqa: SLF001
        # Before the first read, Faust's last offset is the next one to read.
        return (fetched or 0) >= end and (last or 0) <= applied and max(self._under_way(tp), default=-1) < applied

    async def is_pending(self, partition: int, offset: int) -> bool:
        """True if a record is written there, and is not delivered yet or not acknowledged."""
        tp, consumer = self._assigned(partition), self._app.consumer
        if offset >= await self.end(partition):
            return False
        last: int | None = consumer._read_offset.get(tp)  # type: ignore[attr-defined]  # noqa: SLF001
        if (await consumer.position(tp) or 0) <= offset or (last or 0) < offset:
            return True
        return offset in self._under_way(tp)

    def _under_way(self, tp: TP) -> list[int]:
        """Return the offsets that are delivered and not acknowledged."""
        unacked = list(self._app.consumer._unacked_messages)  # type: ignore[attr-defined]  # noqa: SLF001
        return [message.offset for message in unacked if message.tp == tp]

    def _assigned(self, partition: int) -> TP:
        """Return the assigned partition. After a rebalance its new owner gets the command again."""
        if not self.is_assigned(partition):
            raise Unavailable(f"partition {partition} is no longer assigned to this worker")
        return TP(self._topic, partition)
