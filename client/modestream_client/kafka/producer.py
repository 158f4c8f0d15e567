"""The client's producer, made anew where Kafka takes no more of its records.

An idempotent producer numbers its records. Where Kafka refuses one, as it does if its timestamp is too far ahead,
aiokafka goes on with the next number, and Kafka refuses all later ones of that partition as out of order, for ever.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import OutOfOrderSequenceNumber
from aiokafka.structs import RecordMetadata

HandOver = Callable[[AIOKafkaProducer], Awaitable[asyncio.Future[RecordMetadata]]]
"""Gives a producer a record; returns the future of its place."""


class RenewedProducer:
    """A producer, and its successor when Kafka has lost count of its records."""

    def __init__(self, make: Callable[[], AIOKafkaProducer], stop: Callable[[Any], Coroutine[Any, Any, None]]) -> None:
        """`make` returns a producer that is not started; `stop` ends one within a limited time."""
        self._make = make
        self._stop = stop
        self.current = make()
        self._renewing = asyncio.Lock()
        self._stopping: set[asyncio.Task[None]] = set()

    async def send(self, hand_over: HandOver) -> RecordMetadata:
        """Write a record, once more where it was refused as out of order. Raises KafkaError.

        Cancellation does not take it back.
        """
        producer = self.current
        try:
            return await asyncio.shield(await hand_over(producer))
        except OutOfOrderSequenceNumber:
            await self._renew(producer)
            return await asyncio.shield(await hand_over(self.current))

    async def stop(self) -> None:
        """Flush, and disconnect."""
        await self._stop(self.current)
        if self._stopping:
            await asyncio.wait(self._stopping)

    async def _renew(self, refused: AIOKafkaProducer) -> None:
        """Start another one, unless that was done for an earlier record."""
        async with self._renewing:
            if self.current is not refused:
                return
            successor = self._make()
            try:
                await successor.start()
            except BaseException:
                await self._stop(successor)
                raise
            self.current = successor
            ending = asyncio.create_task(self._stop(refused))
            self._stopping.add(ending)
            ending.add_done_callback(self._stopping.discard)
