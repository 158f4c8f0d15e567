"""The path of records from the readers of topics to the agents, without Faust's channels and streams.

Enters: messages that Faust's consumer tracks. Leaves: events, in order, for one agent. Guaranteed: only `settle`
acknowledges an event; cleared ones are delivered again. Faust itself takes several passes of the event loop for each
record that it hands over.
"""

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, Self, cast

from faust.types.tuples import Message

from schemas.messages.records import Record

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
