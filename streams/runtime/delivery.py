"""At-least-once delivery in order, without a round trip for each event.

An agent handles events in two halves. `begin` runs for one event after another, in the order of the partition: it
decides, writes tables, hands records to the producer, and returns an awaitable. `settle` gets the longest run of
finished events, oldest first, and makes their effects durable; only then are they acknowledged, in order. Many events
are in flight, and none is acknowledged before its effects and those of all earlier ones are durable. An exception ends
the run: unacknowledged events are delivered again.

With a `FairShare` only events of the same key begin in order, and keys take turns: a flood of one user delays only that
user. They are still acknowledged in order. An event counts as an urgent request if it is alone with its key, or if
there is no `FairShare`; an event behind others of its key gives way to requests, as do all events of a background
agent.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any, Generic, Protocol, Self, TypeVar, cast

from faust.types.tuples import Message

from schemas.messages.records import Record
from streams.fair_queue import FairQueue, FairShare
from streams.foreground import MAX_WAIT_SHARE, Foreground, RequestUnderWay

Finished = TypeVar("Finished")

Begin = Callable[[Record], Awaitable[Awaitable[Finished]]]
Settle = Callable[[Sequence[Finished]], Awaitable[None]]

BACKGROUND_SHARE = 1
"""Maximum wait of a background agent for requests, as a multiple of its previous working time."""

SETTLED_SHARE = 4
"""Share of the window that is settled at once: events being settled occupy the window; the rest must keep the embedder
busy."""

LOOK_INTERVAL_S = 0.03
"""Interval, during a pause, between checks whether it still helps."""

MAX_HELD_BYTES = 128 * 1024 * 1024
"""Bytes of the values of one agent's events in flight, beyond which no more are read, whatever the window."""


class AckableEvent(Protocol):
    """An event of the stream: a record and its acknowledgement."""

    @property
    def record(self) -> Record:
        """The record that was read."""

    def settle(self) -> None:
        """Acknowledge it."""

    def leave(self) -> None:
        """Give it up: it is delivered again."""


@dataclass(slots=True, eq=False)
class Held(Generic[Finished]):
    """An event in flight. `finishing` is None until its `begin` has returned."""

    event: AckableEvent
    record: Record
    has_begun: bool = False
    request: RequestUnderWay | None = None
    """The request that it counts as; None if it gives way to requests."""
    finishing: "asyncio.Future[Finished] | None" = None
    is_left: bool = False

    @property
    def size(self) -> int:
        return len(self.record.value or b"")


class Delivery(Generic[Finished]):
    """Runs one agent over its stream.

    `window` limits the events in flight, and `MAX_HELD_BYTES` their values. `pause_s` is the time between two calls of
    `settle`, so that under load each makes many events durable at the price of one; a single event is settled at once.
    A pause ends early when a full batch has finished, or all have and no other has come.
    """

    def __init__(
        self,
        begin: Begin[Finished],
        settle: Settle[Finished],
        *,
        window: int,
        pause_s: float = 0,
        fair_share: FairShare | None = None,
        foreground: Foreground | None = None,
        is_background: bool = False,
    ) -> None:
        """Without `fair_share` all events begin in order; `is_background`: no caller waits for any of them."""
        self._begin = begin
        self._settle = settle
        self._window = window
        self._batch = max(1, window // SETTLED_SHARE)
        """Maximum events settled at once."""
        self._pause_s = pause_s
        self._fair_share = fair_share
        self._foreground = foreground or Foreground()
        self._is_background = is_background
        self._waiting: FairQueue[Held[Finished]] = FairQueue(self._is_large)
        self._has_large = False
        """True while a large event begins."""
        self._in_flight: deque[Held[Finished]] = deque()
        self._held_bytes = 0
        self._worked_s = 0.0
        """Seconds spent in `begin` since other tasks ran."""
        self._pausing = asyncio.Lock()
        self._queued = asyncio.Event()
        self._begun = asyncio.Event()
        self._settled = asyncio.Event()

    async def run(self, stream: AsyncIterable[AckableEvent]) -> None:
        """Handle the stream until it ends and all events are settled. Call it once."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._settle_in_order())]
                if self._fair_share is not None:
                    tasks += [group.create_task(self._begin_in_turn()) for _ in range(self._fair_share.at_once)]
                events = aiter(stream)
                # Wait for room first: an event taken but not in flight would begin after its partition was left.
                while await self._has_room() and (event := await anext(events, None)) is not None:
                    await self._take(event)
                while self._in_flight:
                    await self._next_settled()
                for task in tasks:
                    task.cancel()
        finally:
            for held in self._in_flight:
                if held.finishing is not None:
                    held.finishing.cancel()

    def leave_waiting(self) -> None:
        """Give up the events that wait for their turn, before their partitions are taken away.

        Events that have begun after one of them finish, but are not acknowledged either: all are delivered again.
        """
        self._waiting.clear()
        kept = next((place for place, held in enumerate(self._in_flight) if not held.has_begun), len(self._in_flight))
        while len(self._in_flight) > kept:
            held = self._in_flight.pop()
            self._held_bytes -= held.size
            self._leave(held)
        self._settled.set()

    async def _has_room(self) -> bool:
        """Wait until another event may be in flight, and return True."""
        while len(self._in_flight) >= self._window or self._held_bytes > MAX_HELD_BYTES:
            await self._next_settled()
        return True

    async def _take(self, event: AckableEvent) -> None:
        held: Held[Finished] = Held(event, event.record)
        self._in_flight.append(held)
        self._held_bytes += held.size
        if self._fair_share is None:
            if not self._is_background:
                held.request = self._foreground.enter()
            await self._begin_and_give_way(held)
            return
        key = self._fair_share.key_of(held.record)
        if not self._waiting.is_known(key):
            held.request = self._foreground.enter()
        self._waiting.put(key, held)
        self._queued.set()

    async def _begin_in_turn(self) -> None:
        while True:
            while not self._waiting.has_ready(large=not self._has_large):
                self._queued.clear()
                await self._queued.wait()
            key, held = self._waiting.hold(large=not self._has_large)
            is_large = self._is_large(held)
            self._has_large |= is_large
            await self._begin_and_give_way(held)
            self._waiting.release(key)
            if is_large:
                self._has_large = False
                self._queued.set()

    async def _begin_and_give_way(self, held: Held[Finished]) -> None:
        """Begin, and let other tasks run: `begin` itself may never wait."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        held.has_begun = True
        with self._foreground.handling(held.request):
            held.finishing = asyncio.ensure_future(await self._begin(held.record))
        if (request := held.request) is not None:
            held.finishing.add_done_callback(lambda _: request.leave())
        self._begun.set()
        if held.is_left:
            self._leave(held)
        self._worked_s += loop.time() - began
        if self._worked_s < self._foreground.slice_s:
            return
        worked_s, self._worked_s = self._worked_s, 0.0
        if held.request is not None:
            await asyncio.sleep(0)
            return
        # Users whose events begin at once share the slices one after another, as others wait for all of them.
        async with self._pausing:
            await self._foreground.give_way(worked_s, BACKGROUND_SHARE if self._is_background else MAX_WAIT_SHARE)

    def _is_large(self, held: Held[Finished]) -> bool:
        return self._fair_share is not None and self._fair_share.is_large(held.record)

    def _leave(self, held: Held[Finished]) -> None:
        """Give an event up once it has ended."""
        held.is_left = True
        if not held.has_begun:
            if held.request is not None:
                held.request.leave()
            held.event.leave()
        elif held.finishing is not None:
            held.finishing.add_done_callback(lambda _: held.event.leave())

    async def _next_settled(self) -> None:
        self._settled.clear()
        await self._settled.wait()

    async def _settle_in_order(self) -> None:
        while True:
            # Wait until the oldest event has begun.
            while not self._in_flight or self._in_flight[0].finishing is None:
                self._begun.clear()
                await self._begun.wait()
            head = self._in_flight[0].finishing
            # Not awaited itself: if it were cancelled, this task would count as cancelled too, and end silently.
            await asyncio.wait([head])
            started = asyncio.get_running_loop().time()
            finished, results = self._finished_head()
            await self._settle(results)
            for held in finished:
                held.event.settle()
                self._in_flight.popleft()
                self._held_bytes -= held.size
            self._settled.set()
            await self._pause(started + self._pause_s)

    async def _pause(self, until: float) -> None:
        """Let others finish until a loop time, but only while that makes the next batch larger."""
        loop, newest = asyncio.get_running_loop(), None
        await asyncio.sleep(0)
        while (left := until - loop.time()) > 0 and not self._has_full_batch():
            await asyncio.sleep(min(left, LOOK_INTERVAL_S))
            before, newest = newest, self._in_flight[-1] if self._in_flight else None
            if newest is before and all(map(_has_finished, self._in_flight)):
                return

    def _has_full_batch(self) -> bool:
        return len(self._in_flight) >= self._batch and all(map(_has_finished, islice(self._in_flight, self._batch)))

    def _finished_head(self) -> tuple[list[Held[Finished]], list[Finished]]:
        finished: list[Held[Finished]] = []
        results: list[Finished] = []
        for held in takewhile(_has_finished, islice(self._in_flight, self._batch)):
            assert held.finishing is not None
            if held.finishing.cancelled():
                raise RuntimeError("an event was cancelled before it was finished")
            finished.append(held)
            results.append(held.finishing.result())
        return finished, results


def _has_finished(held: Held[Finished]) -> bool:
    return held.finishing is not None and held.finishing.done()


MAX_WAITING_EVENTS = 1000
"""Events of one agent above which its topic is not polled. One poll may exceed it by its records."""

EVENTS_PER_PASS = 50
"""Events taken in a row, about 2 ms."""


class HeldEvent:
    """A record for one agent, acknowledged by `settle` alone."""

    __slots__ = ("_consumer", "_message", "_written_after_s")

    def __init__(self, message: Message, consumer: Any, written_after_s: float | None = None) -> None:
        self._message = message
        self._written_after_s = written_after_s
        self._consumer = consumer

    @property
    def record(self) -> Record:
        """The record as read, in bytes."""
        message = self._message
        return Record(
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            timestamp_ms=round((message.timestamp or 0) * 1000),
            key=message.key,
            value=message.value,
            headers=tuple(cast(Iterable[tuple[str, bytes | None]], message.headers or ())),
            written_after_s=self._written_after_s,
        )

    def settle(self) -> None:
        """Acknowledge: the effects of this event and of all before it are durable."""
        self._message.ack(self._consumer)

    def leave(self) -> None:
        """Give the event up without an acknowledgement: it is delivered again, and rebalances don't wait for it."""
        self._message.acked = True


# Faust itself takes several passes of the event loop for each record that it hands over. Only `settle` acknowledges
# an event; cleared ones are delivered again.
class Inbox:
    """The events of one agent that it has not taken yet. Belongs to one event loop, and has one reader."""

    def __init__(self) -> None:
        self._waiting: deque[HeldEvent] = deque()
        self._changed = asyncio.Event()
        self._taken = asyncio.Event()
        self._passed = 0
        self._is_closed = False

    @property
    def is_full(self) -> bool:
        """True if the agent should catch up first."""
        return len(self._waiting) >= MAX_WAITING_EVENTS

    def put(self, event: HeldEvent) -> None:
        self._waiting.append(event)
        self._changed.set()

    async def has_room(self) -> bool:
        """Wait until the inbox is not full, and return True."""
        while self.is_full:
            self._taken.clear()
            await self._taken.wait()
        return True

    def clear(self) -> None:
        """Give up all waiting events: their partitions are taken away."""
        while self._waiting:
            self._waiting.popleft().leave()
        self._taken.set()

    def close(self) -> None:
        """End the iteration: the agent stops, and waiting events are delivered again."""
        self.clear()
        self._is_closed = True
        self._changed.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> HeldEvent:
        self._passed += 1
        if self._passed % EVENTS_PER_PASS == 0:
            await asyncio.sleep(0)
        while not self._waiting:
            if self._is_closed:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        self._taken.set()
        return self._waiting.popleft()
