"""Follows the topics that feeds are made of: boundaries at once, events and runs from the first request on."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import Context

from gateway.service.boundaries import Boundaries
from gateway.service.events import TOPICS
from gateway.service.failures import unavailable
from gateway.service.feed import Feed
from gateway.service.runs import TOPIC as RUNS_TOPIC
from gateway.service.runs import Runs
from gateway.wire.follow import Cluster, Follower, Handle
from schemas.messages.records import Record

BEGIN_S = 8.0
"""Seconds that the first listener waits for the topics of events."""


class Feeds:
    """Runs the followers of one gateway, as `async with feeds.running()`."""

    def __init__(self, cluster: Cluster, boundaries: Boundaries, feed: Feed) -> None:
        self.runs = Runs(self._begin_runs, boundaries.fields)
        self._boundaries = Follower(cluster, ["boundaries"], "beginning", _apply_to(boundaries, self.runs))
        self._begun = asyncio.Event()

        def begin(starts: dict[tuple[str, int], int]) -> None:
            feed.begin(starts)
            self._begun.set()

        self._events = Follower(cluster, TOPICS, "now", _take_into(feed), begin)
        self._runs = Follower(cluster, [RUNS_TOPIC], "beginning", _keep_in(self.runs))
        self._tasks: list[asyncio.Task[None]] = []
        self._following: set[Follower] = set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Follow while the block runs."""
        self._follow(self._boundaries)
        try:
            yield
        finally:
            for task in self._tasks:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def begin_events(self) -> None:
        """Follow events, if that was not begun. Raises Refused, `unavailable`, if it can't be."""
        await self._begin(self._events, self._begun)

    async def _begin_runs(self) -> None:
        await self._begin(self._runs, self._runs.is_caught_up)

    async def _begin(self, follower: Follower, has_begun: asyncio.Event) -> None:
        self._follow(follower)
        try:
            async with asyncio.timeout(BEGIN_S):
                await has_begun.wait()
        except TimeoutError:
            raise unavailable() from None

    def _follow(self, follower: Follower) -> None:
        """Run a follower, once. Of no request: it outlives the one that began it, and so do its log lines."""
        if follower not in self._following:
            self._following.add(follower)
            self._tasks.append(asyncio.create_task(follower.run(), context=Context()))


def _apply_to(boundaries: Boundaries, runs: Runs) -> Handle:
    def apply(records: Sequence[Record]) -> None:
        for one in records:
            boundaries.apply(one.key, one.value)
            if one.value is None and one.key is not None:
                runs.forget(one.key)

    return apply


def _take_into(feed: Feed) -> Handle:
    def take(records: Sequence[Record]) -> None:
        for one in records:
            feed.take(one.topic, one.partition, one.offset, one.timestamp_ms, one.key, one.value)

    return take


def _keep_in(runs: Runs) -> Handle:
    def keep(records: Sequence[Record]) -> None:
        for one in records:
            runs.apply(one.value)

    return keep
