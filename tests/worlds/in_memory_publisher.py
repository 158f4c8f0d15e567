"""How the map writes to topics in memory, and which step wrote to which topic."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from schemas.messages.records import Outgoing
from streams.wire.partitioning import MOVED_FROM
from tests.worlds.in_memory_topics import InMemoryTopics

Result = TypeVar("Result")

Arrow = tuple[str, str]
"""An agent, by its class, and a topic that it writes to."""


class InMemoryPublisher:
    """Implements `streams.flow.support.publisher.Publisher` for these agents; notes where they write."""

    def __init__(self, topics: InMemoryTopics, deciders: Sequence[str], arrows: set[Arrow]) -> None:
        self._topics = topics
        self._deciders = deciders
        self._arrows = arrows

    async def send(self, out: Outgoing) -> Awaitable[None]:
        """Write a record."""
        if all(name != MOVED_FROM for name, _ in out.headers):
            self._arrows.update((decider, out.topic) for decider in self._deciders)
        await self._topics.append(out)
        return _done(None)

    async def reply(self, out: Outgoing) -> Awaitable[bool]:
        """Write a reply, where its topic exists."""
        there = self._topics.has(out.topic)
        if there:
            await self.send(out)
        return _done(there)


def _done(result: Result) -> asyncio.Future[Result]:
    """What is done already; unlike a coroutine it may be left alone when the map is stopped."""
    future = asyncio.get_running_loop().create_future()
    future.set_result(result)
    return future
