"""Batch single records into bursts.

A produce request costs broker and worker a millisecond regardless of its content, and records of different partitions
that come at different times go in requests of their own. So records are gathered: the first one after a pause is handed
over at once, later ones together when the interval of one of them has passed: `BURST_INTERVAL_S`, or longer for records
that no caller waits for. The order is unchanged.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerClosed
from faust.exceptions import ProducerSendError
from faust.transport.drivers.aiokafka import Producer
from faust.types import FutureMessage
from faust.types.tuples import RecordMetadata

from streams.runtime.kafka_refusals import REFUSALS

T = TypeVar("T")

BURST_INTERVAL_S = 0.025
"""The least time between two bursts. Only commands and acknowledgements wait for these records: a turn is readable and
answered before."""

UNHURRIED_INTERVAL_S = 0.1
"""The same for records that no caller waits for, such as those by which a turn gets its vector."""

CHANGELOG_RETRY_S = 0.5
"""The pause before a changelog record is handed to the producer again."""

log = structlog.get_logger()


class Bursts(Generic[T]):
    """Gathers items and hands them over in bursts. Belongs to one event loop."""

    def __init__(self, hand_over: Callable[[Sequence[T]], None], interval_s: float = BURST_INTERVAL_S) -> None:
        """`hand_over` takes a burst; `interval_s` is the least time between two calls."""
        self._hand_over = hand_over
        self._interval_s = interval_s
        self._gathered: list[T] = []
        self._timer: asyncio.TimerHandle | None = None
        self._last = float("-inf")
        """When the last burst was handed over."""
        self._due = float("inf")
        """When the timer rings."""

    def add(self, item: T, interval_s: float | None = None) -> None:
        """Add an item to the next burst, which it hurries on if its own `interval_s` is the shorter one."""
        self._gathered.append(item)
        loop = asyncio.get_running_loop()
        due = max(loop.time(), self._last + (self._interval_s if interval_s is None else interval_s))
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due, self._timer = due, loop.call_at(due, self.flush)

    def flush(self) -> None:
        """Hand over what is gathered now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._gathered:
            burst, self._gathered = self._gathered, []
            self._last = asyncio.get_running_loop().time()
            self._hand_over(burst)


class BurstProducer(Producer):
    """Faust's producer of changelog records, fed in bursts.

    An exception of `send` ends Faust's buffer and the worker with it. So a record waits here while the broker takes
    none, and those behind it too, in order; a record that Kafka never takes fails alone.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._bursts: Bursts[FutureMessage] = Bursts(self._put)

    def _new_producer(self, *args: Any, **kwargs: Any) -> AIOKafkaProducer:
        return self.app.fence.guard(super()._new_producer(*args, **kwargs))  # type: ignore[attr-defined]

    def send_soon(self, fut: FutureMessage) -> None:
        """Add a record to the next burst."""
        self._bursts.add(fut)

    async def send(self, *args: Any, **kwargs: Any) -> Awaitable[RecordMetadata]:
        """Hand a record over, however long that takes; the result is done when the broker has it or refuses it."""
        while True:
            try:
                return await super().send(*args, **kwargs)
            except ProducerSendError as problem:
                cause = problem.__cause__
                if isinstance(cause, REFUSALS):
                    return _failed(cause)
                if isinstance(cause, ProducerClosed):
                    raise
                log.warning("Kafka did not accept a changelog record, sending it again", problem=repr(cause))
                await asyncio.sleep(CHANGELOG_RETRY_S)

    async def flush(self) -> None:
        """Wait until all added records are written."""
        self._bursts.flush()
        await super().flush()

    async def on_stop(self) -> None:
        """Write all added records and disconnect."""
        self._bursts.flush()
        await super().on_stop()

    def _put(self, records: Sequence[FutureMessage]) -> None:
        for record in records:
            self.buffer.put(record)


def _failed(problem: Exception) -> asyncio.Future[RecordMetadata]:
    failed: asyncio.Future[RecordMetadata] = asyncio.get_running_loop().create_future()
    failed.set_exception(problem)
    return failed
