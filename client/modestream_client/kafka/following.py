"""A connection to the deployment that a topic prefix names: to the one that replaces it, once that serves.

Guaranteed: nothing is sent while a switch pauses clients, nor to a deployment that was replaced; calls wait for the end
of a pause within their timeout. What was sent before is answered, or ends with its timeout. A call costs nothing more.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Protocol

from modestream_client.answers import Json, Reply
from modestream_client.failures import MemoryClientError, MemoryClosed, MemoryTimeout, MemoryUnreachable
from modestream_client.kafka.successor import Notice, Place
from modestream_client.kafka.transport import KafkaTransport
from modestream_client.offsets import Written
from modestream_client.transport import ReadAfter

MAX_SUCCESSORS = 16
"""Deployments that have replaced each other, from the one that the prefix named at first."""

RETRY_S = 1.0
"""Between two attempts to connect to a successor."""

GRACE_S = 5.0
"""Seconds after a switch in which answers of the former deployment still arrive."""


class Watch(Protocol):
    """What is written of the successor of one deployment."""

    last: Notice | None

    async def open(self) -> None:
        """Read what is there."""

    async def next(self) -> Notice | None:
        """Wait for the next notice; None if there will be none."""

    async def close(self) -> None:
        """Disconnect."""


class FollowingTransport:
    """Implements `modestream_client.transport.Transport` over one deployment after the other.

    A switch that comes while the service's topic can't be read, as without permission, is not followed.
    """

    def __init__(
        self, place: Place, timeout: float, connect: Callable[[Place], KafkaTransport], watch: Callable[[Place], Watch]
    ) -> None:
        """`timeout` is that of calls that give none; `connect` and `watch` make what is not yet open."""
        self._first = place
        self._timeout = timeout
        self._connect = connect
        self._watch_of = watch
        self._transport: KafkaTransport | None = None
        self._serving = asyncio.Event()
        self._pauses_until = 0.0
        self._following: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Connect to the deployment that serves. Raises `MemoryUnreachable`."""
        try:
            async with asyncio.timeout(self._timeout):
                place, watch = await self._found(self._first)
                self._transport = transport = self._connect(place)
                try:
                    await transport.open()
                except BaseException:
                    await watch.close()
                    raise
        except TimeoutError as problem:
            message = f"no connection to Kafka at {self._first.bootstrap}: no answer in time: is the service up?"
            raise MemoryUnreachable(message) from problem
        self._serving.set()
        self._following = asyncio.create_task(self._follow(place, watch))

    async def close(self) -> None:
        """Fail pending requests with `MemoryClosed`, and disconnect."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait({self._following})
        for ending in list(self._ending):
            ending.cancel()
        transport, self._transport = self._transport, None
        await asyncio.gather(*self._ending, return_exceptions=True)
        if transport is not None:
            await transport.close()

    async def resolve_read_after(self, user_id: str, read_after: ReadAfter) -> int | None:
        """As `KafkaTransport`; places of a deployment that was replaced mean nothing any more."""
        return await (await self._ready(self._timeout)).resolve_read_after(user_id, read_after)

    async def partition_of(self, user_id: str) -> int:
        """Return the partition of the user's records."""
        return await (await self._ready(self._timeout)).partition_of(user_id)

    async def write(self, topic: str, record: Json, *, principal: str | None, timeout: float | None) -> Written:
        """Send a record without a reply address and wait for Kafka's acknowledgement."""
        began, limit = time.monotonic(), self._limit(timeout)
        transport = await self._ready(limit)
        left = limit - (time.monotonic() - began)
        return await transport.write(topic, record, principal=principal, timeout=left)

    async def request(
        self, topic: str, record: Json, *, principal: str | None, timeout: float | None, deadline: bool
    ) -> tuple[Reply, Written]:
        """Send a record and wait for its reply; with `deadline` the service drops it after the timeout."""
        began, limit = time.monotonic(), self._limit(timeout)
        transport = await self._ready(limit)
        left = limit - (time.monotonic() - began)
        return await transport.request(topic, record, principal=principal, timeout=left, deadline=deadline)

    async def _ready(self, limit: float) -> KafkaTransport:
        """Return the connection to the deployment that serves. Raises `MemoryTimeout`, with nothing sent."""
        if not self._serving.is_set() and self._transport is not None:
            try:
                async with asyncio.timeout(limit):
                    await self._serving.wait()
            except TimeoutError:
                message = f"the deployment was being replaced for {limit:g} s, and nothing was sent: try again"
                raise MemoryTimeout(message, is_written=False) from None
        if self._transport is None:
            raise MemoryClosed("the client is not open: use it inside `async with MemoryClient(…)`")
        return self._transport

    def _limit(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else timeout

    async def _found(self, place: Place) -> tuple[Place, Watch]:
        """Return the deployment that serves in place of another one, and what watches it."""
        for _ in range(MAX_SUCCESSORS):
            watch = self._watch_of(place)
            await watch.open()
            if watch.last is None or not watch.last.successor.serves:
                return place, watch
            await watch.close()
            place = watch.last.successor.place(place)
        raise MemoryClosed(f"{self._first.topic_prefix} was replaced more than {MAX_SUCCESSORS} times")

    async def _follow(self, place: Place, watch: Watch) -> None:
        try:
            notice = watch.last
            while True:
                if notice is not None and notice.successor.serves:
                    await watch.close()
                    place, watch = await self._moved(notice.successor.place(place))
                    notice = watch.last
                    continue
                notice = await self._decided(notice, watch)
                if notice is None:
                    return
        finally:
            await watch.close()
            self._serving.set()

    async def _decided(self, notice: Notice | None, watch: Watch) -> Notice | None:
        """Return the next notice; hold calls back while the present one pauses them."""
        upcoming = asyncio.create_task(watch.next())
        try:
            if notice is not None and (left_s := notice.pauses_until - time.monotonic()) > 0:
                self._serving.clear()
                if (await asyncio.wait({upcoming}, timeout=left_s))[0]:
                    return await upcoming
            self._serving.set()
            return await upcoming
        finally:
            upcoming.cancel()

    async def _moved(self, place: Place) -> tuple[Place, Watch]:
        """Connect to a successor, however long that takes; nothing is sent meanwhile."""
        self._serving.clear()
        while True:
            place, watch = await self._found(place)
            transport = self._connect(place)
            try:
                await transport.open()
            except MemoryClientError:
                await transport.close()
                await watch.close()
                await asyncio.sleep(RETRY_S)
            else:
                break
        former, self._transport = self._transport, transport
        self._serving.set()
        if former is not None:
            ending = asyncio.create_task(_end(former))
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)
        return place, watch


async def _end(former: KafkaTransport) -> None:
    try:
        await asyncio.sleep(GRACE_S)
    finally:
        await former.close()
