"""How the map writes to topics in memory, and which step wrote to which topic."""

import asyncio
from collections.abc import Awaitable

from agents.rules.placement import MOVED_FROM
from schemas.records import Outgoing
from tests.stream.in_memory_topics import InMemoryTopics

Arrow = tuple[str, str]
"""A topic that is read, and one that its reader writes to."""


class InMemoryPublisher:
    """Implements `streams.flow.publishing.Publisher` for the reader of the topic `reader`; notes where it writes."""

    def __init__(self, topics: InMemoryTopics, reader: str, arrows: set[Arrow]) -> None:
        self._topics = topics
        self._reader = reader
        self._arrows = arrows

    async def send(self, out: Outgoing) -> Awaitable[None]:
        """Write a record."""
        if all(name != MOVED_FROM for name, _ in out.headers):
            self._arrows.add((self._reader, out.topic))
        await self._topics.append(out)
        return _done()

    async def reply(self, out: Outgoing) -> Awaitable[bool]:
        """Write a reply, where its topic exists."""
        there = self._topics.has(out.topic)
        if there:
            await (await self.send(out))
        return asyncio.sleep(0, there)


async def _done() -> None:
    return None
