"""Records that come one by one, handed over together.

Each request with records costs the broker and us a millisecond, whatever is in it, and records of different partitions
that come at different moments go in requests of their own. So those that come within a while are handed over in one go:
at once after a pause, so that one that comes alone waits for nothing, and otherwise when `BURST_INTERVAL_S` have gone by.
Guaranteed: the order in which they came.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from faust.transport.drivers.aiokafka import Producer
from faust.types import FutureMessage

T = TypeVar("T")

BURST_INTERVAL_S = 0.025
"""Between two bursts. Nobody waits for these records but commands and acknowledgements: a turn can be read, and is
answered, before."""


class Bursts(Generic[T]):
    """Gathers what is to be handed over. Belongs to one event loop."""

    def __init__(self, hand_over: Callable[[Sequence[T]], None], pause_s: float = BURST_INTERVAL_S) -> None:
        """Take who gets what was gathered, and the least time between two calls of it."""
        self._hand_over = hand_over
        self._pause_s = pause_s
        self._waiting: list[T] = []
        self._due: asyncio.TimerHandle | None = None
        self._not_before = float("-inf")

    def add(self, one: T) -> None:
        """Take one more."""
        self._waiting.append(one)
        if self._due is None:
            loop = asyncio.get_running_loop()
            self._due = loop.call_at(max(loop.time(), self._not_before), self.flush)

    def flush(self) -> None:
        """Hand over what is there now."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            self._not_before = asyncio.get_running_loop().time() + self._pause_s
            self._hand_over(waiting)


class BurstProducer(Producer):
    """Faust's producer of changelog records, which gets them in bursts."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._bursts: Bursts[FutureMessage] = Bursts(self._put)

    def send_soon(self, fut: FutureMessage) -> None:
        """Take a record."""
        self._bursts.add(fut)

    async def flush(self) -> None:
        """Wait until what was taken is written."""
        self._bursts.flush()
        await super().flush()

    async def on_stop(self) -> None:
        """Write what was taken, and disconnect."""
        self._bursts.flush()
        await super().on_stop()

    def _put(self, records: Sequence[FutureMessage]) -> None:
        for record in records:
            self.buffer.put(record)
