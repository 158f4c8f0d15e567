"""At-least-once delivery in order, without a round trip for each event.

An agent handles events in two halves. `begin` runs for one event after another, in the order of the partition: it
decides, writes tables and hands records to the producer, and returns what is still to be awaited. `settle` gets the
longest run of finished events, oldest first, and makes their effects durable; only then are they acknowledged, in
order. Many events are in flight, and none is acknowledged before its effects and those of all earlier ones are durable.
An exception ends the run: unacknowledged events are delivered again.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar, cast

import faust

from schemas.messages.records import Record


class HeldEvent(faust.Event):
    """An event that is acknowledged by `settle` alone."""

    @property
    def record(self) -> Record:
        """What was read, as bytes."""
        message = self.message
        return Record(
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            timestamp_ms=round((message.timestamp or 0) * 1000),
            key=message.key,
            value=message.value,
            headers=tuple(cast(Iterable[tuple[str, bytes | None]], message.headers or ())),
        )

    def ack(self) -> bool:
        """Do nothing: Faust calls this too early."""
        return False

    def settle(self) -> None:
        """Acknowledge: the effects of this event and of all before it are durable."""
        super().ack()


Finished = TypeVar("Finished")

Begin = Callable[[Record], Awaitable[Awaitable[Finished]]]
Settle = Callable[[Sequence[Finished]], Awaitable[None]]


class AckableEvent(Protocol):
    """An event of the stream: a record and its acknowledgement."""

    @property
    def record(self) -> Record:
        """The record that was read."""

    def settle(self) -> None:
        """Acknowledge it."""


class Delivery(Generic[Finished]):
    """Runs one agent over its stream.

    `window` limits the events in flight. `pause_s` is the least time between two calls of `settle`, so that under load
    each makes many events durable at the price of one; a single event is settled at once.
    """

    def __init__(self, begin: Begin[Finished], settle: Settle[Finished], *, window: int, pause_s: float = 0) -> None:
        self._begin = begin
        self._settle = settle
        self._pause_s = pause_s
        self._room = asyncio.Semaphore(window)
        self._in_flight: deque[tuple[AckableEvent, asyncio.Future[Finished]]] = deque()
        self._arrived = asyncio.Event()
        self._settled = asyncio.Event()

    async def run(self, stream: AsyncIterable[AckableEvent]) -> None:
        """Handle the stream until it ends and all events are settled. To be called once."""
        try:
            async with asyncio.TaskGroup() as group:
                settling = group.create_task(self._settle_in_order())
                async for event in stream:
                    await self._start(event)
                while self._in_flight:
                    self._settled.clear()
                    await self._settled.wait()
                settling.cancel()
        finally:
            for _, finishing in self._in_flight:
                finishing.cancel()

    async def _start(self, event: AckableEvent) -> None:
        await self._room.acquire()
        finishing = await self._begin(event.record)
        self._in_flight.append((event, asyncio.ensure_future(finishing)))
        self._arrived.set()

    async def _settle_in_order(self) -> None:
        while True:
            while not self._in_flight:
                self._arrived.clear()
                await self._arrived.wait()
            # Not awaited itself: if it were cancelled, this task would count as cancelled too, and end silently.
            await asyncio.wait([self._in_flight[0][1]])
            started = asyncio.get_running_loop().time()
            events, results = self._finished_head()
            await self._settle(results)
            for event in events:
                event.settle()
                self._in_flight.popleft()
                self._room.release()
            self._settled.set()
            await asyncio.sleep(max(0.0, self._pause_s - (asyncio.get_running_loop().time() - started)))

    def _finished_head(self) -> tuple[list[AckableEvent], list[Finished]]:
        events: list[AckableEvent] = []
        results: list[Finished] = []
        for event, finishing in self._in_flight:
            if not finishing.done():
                break
            if finishing.cancelled():
                raise RuntimeError("an event was cancelled before it was finished")
            events.append(event)
            results.append(finishing.result())
        return events, results
