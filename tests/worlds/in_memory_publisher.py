"""A publisher over in-memory topics that records which agents write to which topic."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from schemas.messages.records import Outgoing
from streams.wire.partitioning import MOVED_FROM
from tests.worlds.in_memory_topics import InMemoryTopics

Result = TypeVar("Result")

Arrow = tuple[str, str]
"""The class name of an agent and a topic."""


class InMemoryPublisher:
    """Implements `streams.flow.publisher.Publisher` for `deciders` and records their arrows."""

    def __init__(self, topics: InMemoryTopics, deciders: Sequence[str], arrows: set[Arrow]) -> None:
        self._topics = topics
        self._deciders = deciders
        self._arrows = arrows

    async def send(self, out: Outgoing) -> Awaitable[None]:
        if all(name != MOVED_FROM for name, _ in out.headers):
            self._arrows.update((decider, out.topic) for decider in self._deciders)
        await self._topics.append(out)
        return _done(None)

    def flush(self) -> None:
        """Do nothing: records are written at once."""

    async def reply(self, out: Outgoing) -> Awaitable[bool]:
        """Write a reply, if its topic exists."""
        exists = self._topics.has(out.topic)
        if exists:
            await self.send(out)
        return _done(exists)


def _done(result: Result) -> asyncio.Future[Result]:
    """Return a completed future; unlike a coroutine, it need not be awaited."""
    future = asyncio.get_running_loop().create_future()
    future.set_result(result)
    return future
