"""Follows the topics that feeds are made of: boundaries from the beginning, events from the first listener on."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import Context

from gateway.service.boundaries import Boundaries
from gateway.service.events import TOPICS
from gateway.service.failures import unavailable
from gateway.service.feed import Feed
from gateway.wire.follow import Cluster, Follower, Handle
from schemas.messages.records import Record

BEGIN_S = 8.0
"""Seconds that the first listener waits for the topics of events."""


class Feeds:
    """Runs the followers of one gateway, as `async with feeds.running()`."""

    def __init__(self, cluster: Cluster, boundaries: Boundaries, feed: Feed) -> None:
        self._boundaries = Follower(cluster, ["boundaries"], "beginning", _apply_to(boundaries))
        self._begun = asyncio.Event()

        def begin(starts: dict[tuple[str, int], int]) -> None:
            feed.begin(starts)
            self._begun.set()

        self._events = Follower(cluster, TOPICS, "now", _take_into(feed), begin)
        self._tasks: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow while the block runs."""
        self._tasks.append(asyncio.create_task(self._boundaries.run()))
        try:
            yield
        finally:
            for task in self._tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def begin_events(self) -> None:
        """Follow events, if that was not begun. Raises Refused, `unavailable`, if it can't be."""
        if len(self._tasks) == 1:
            # Of no request: it outlives the one that began it, and so do its log lines.
            self._tasks.append(asyncio.create_task(self._events.run(), context=Context()))
        try:
            async with asyncio.timeout(BEGIN_S):
                await self._begun.wait()
        except TimeoutError:
            raise unavailable() from None


def _apply_to(boundaries: Boundaries) -> Handle:
    def apply(records: Sequence[Record]) -> None:
        for one in records:
            boundaries.apply(one.key, one.value)

    return apply


def _take_into(feed: Feed) -> Handle:
    def take(records: Sequence[Record]) -> None:
        for one in records:
            feed.take(one.topic, one.partition, one.offset, one.timestamp_ms, one.key, one.value)

    return take
