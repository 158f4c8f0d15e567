"""Write rows to changelogs, retrying while Kafka accepts none."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    InvalidTopicError,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerClosed,
    RecordListTooLargeError,
    RecordTooLargeError,
)
from faust.exceptions import ProducerSendError
from faust.transport.drivers.aiokafka import Producer

REFUSALS = (MessageSizeTooLargeError, RecordTooLargeError, RecordListTooLargeError, InvalidTopicError)
"""The same record never succeeds. All other errors may heal: a rebuilt topic, a corrected clock, granted rights."""

CHANGELOG_RETRY_S = 0.5
"""Pause before a row is handed to the producer again."""

Row = tuple[str, bytes, bytes | None, int]
"""Topic, key, value and partition."""

log = structlog.get_logger()


class ChangelogProducer(Producer):
    """Faust's producer, used by the commits of partitions to write their rows."""

    def _new_producer(self, *args: Any, **kwargs: Any) -> AIOKafkaProducer:
        return self.app.fence.guard(super()._new_producer(*args, **kwargs))  # type: ignore[attr-defined]

    async def send_row(self, topic: str, partition: int, key: bytes, value: bytes | None) -> Awaitable[int]:
        """Hand a row over, without a time limit; the result is its offset. Raises KafkaError if it is refused.

        Rows stay in order only if no newer row of a key is handed over before the result.
        """
        row = topic, key, value, partition
        return self._written(row, await self._accepted(row))

    async def _accepted(self, row: Row) -> Awaitable[Any]:
        while True:
            try:
                return await self.send(*row, None, None)
            except ProducerSendError as problem:
                cause = problem.__cause__
                if isinstance(cause, (*REFUSALS, ProducerClosed)):
                    raise cause from problem
                await _pause(cause)

    async def _written(self, row: Row, delivery: Awaitable[Any]) -> int:
        while True:
            try:
                return int((await delivery).offset)
            except REFUSALS:
                raise
            except KafkaError as problem:
                await _pause(problem)
                delivery = await self._accepted(row)


async def _pause(problem: BaseException | None) -> None:
    log.warning("Kafka did not accept a row of a changelog, sending it again", problem=repr(problem))
    await asyncio.sleep(CHANGELOG_RETRY_S)
