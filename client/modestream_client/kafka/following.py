"""A connection to the deployment that a topic prefix names: to the one that replaces it, once that serves.

Guaranteed: nothing is sent while a switch pauses clients, nor to a deployment of which is known that it was replaced;
calls wait for the end of a pause within their timeout. What was sent before is answered, or ends with its timeout. A
call costs nothing more.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from modestream_client.answers import Json, Reply
from modestream_client.failures import MemoryClientError, MemoryClosed, MemoryTimeout, MemoryUnreachable
from modestream_client.kafka.draining import DrainingTransport
from modestream_client.kafka.successor import DeploymentAddress, SuccessorNotice, address_of
from modestream_client.kafka.transport import KafkaTransport
from modestream_client.offsets import Written
from modestream_client.transport import ReadAfter

log = logging.getLogger(__name__)

MAX_SUCCESSORS = 16
"""Limit of the deployments that have replaced each other, from the one that the prefix names on."""

RETRY_INTERVAL_S = 1.0
"""Between two attempts to connect to a successor."""


class Watch(Protocol):
    """What is written of the successor of one deployment."""

    last: SuccessorNotice | None

    async def open(self) -> None:
        """Read what is there."""

    async def next(self) -> SuccessorNotice | None:
        """Wait for the next notice, over outages; None if there will be none."""

    async def close(self) -> None:
        """Disconnect."""


class FollowingTransport:
    """Implements `modestream_client.transport.Transport` over one deployment after the other.

    A switch that comes while the service's topic can't be read is followed as soon as it can; without the topic, or the
    permission, never. After a switch that can't be followed each call fails, and nothing is sent.
    """

    def __init__(
        self,
        address: DeploymentAddress,
        timeout: float,
        connect: Callable[[DeploymentAddress], KafkaTransport],
        watch: Callable[[DeploymentAddress], Watch],
    ) -> None:
        """`timeout` is that of calls that give none; `connect` and `watch` make what is not yet open."""
        self._first = address
        self._timeout = timeout
        self._connect = connect
        self._watch_of = watch
        self._transport: DrainingTransport | None = None
        self._serving = asyncio.Event()
        self._failure: Exception | None = None
        self._following: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Connect to the deployment that serves. Raises `MemoryUnreachable`."""
        try:
            async with asyncio.timeout(self._timeout):
                address, watch = await self._find_serving(self._first)
                transport = self._connect(address)
                try:
                    await transport.open()
                except BaseException:
                    await watch.close()
                    raise
        except TimeoutError as problem:
            message = f"no connection to Kafka at {self._first.bootstrap}: no answer in time: is the service up?"
            raise MemoryUnreachable(message) from problem
        self._transport, self._failure = DrainingTransport(transport), None
        self._serving.set()
        self._following = asyncio.create_task(self._follow(address, watch))

    async def close(self) -> None:
        """Fail pending requests with `MemoryClosed`, and disconnect."""
        # First of all: calls that wait for the end of a pause must find no connection.
        current, self._transport = self._transport, None
        self._serving.set()
        if self._following is not None:
            self._following.cancel()
            await asyncio.wait({self._following})
        for closing in list(self._closing):
            closing.cancel()
        await asyncio.gather(*self._closing, return_exceptions=True)
        if current is not None:
            await current.transport.close()

    async def resolve_read_after(self, user_id: str, read_after: ReadAfter) -> int | None:
        """As `KafkaTransport`; offsets of a deployment that was replaced mean nothing any more."""
        with await self._serving_transport(self._timeout) as transport:
            return await transport.resolve_read_after(user_id, read_after)

    async def partition_of(self, user_id: str) -> int:
        """Return the partition of the user's records."""
        with await self._serving_transport(self._timeout) as transport:
            return await transport.partition_of(user_id)

    async def write(self, topic: str, record: Json, *, principal: str | None, timeout: float | None) -> Written:
        """Send a record without a reply address and wait for Kafka's acknowledgement."""
        began, limit = time.monotonic(), self._limit_s(timeout)
        with await self._serving_transport(limit) as transport:
            left = limit - (time.monotonic() - began)
            return await transport.write(topic, record, principal=principal, timeout=left)

    async def request(
        self, topic: str, record: Json, *, principal: str | None, timeout: float | None, deadline: bool
    ) -> tuple[Reply, Written]:
        """Send a record and wait for its reply; with `deadline` the service drops it after the timeout."""
        began, limit = time.monotonic(), self._limit_s(timeout)
        with await self._serving_transport(limit) as transport:
            left = limit - (time.monotonic() - began)
            return await transport.request(topic, record, principal=principal, timeout=left, deadline=deadline)

    async def _serving_transport(self, limit: float) -> AbstractContextManager[KafkaTransport]:
        """Return the connection to the deployment that serves, for one call.

        Raises `MemoryTimeout` or `MemoryUnreachable`, with nothing sent.
        """
        if not self._serving.is_set() and self._transport is not None:
            try:
                async with asyncio.timeout(limit):
                    await self._serving.wait()
            except TimeoutError:
                message = f"the deployment was being replaced for {limit:g} s, and nothing was sent: try again"
                raise MemoryTimeout(message, is_written=False) from None
        if self._transport is None:
            raise MemoryClosed("the client is not open: use it inside `async with MemoryClient(…)`")
        if self._failure is not None:
            message = f"can't follow the switch of {self._first.topic_prefix}, nothing was sent: {self._failure}"
            raise MemoryUnreachable(message) from self._failure
        return self._transport.call()

    def _limit_s(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else timeout

    async def _find_serving(self, address: DeploymentAddress) -> tuple[DeploymentAddress, Watch]:
        """Return the address of the deployment that serves in place of another one, and its watch."""
        for _ in range(MAX_SUCCESSORS):
            watch = self._watch_of(address)
            await watch.open()
            if watch.last is None or not watch.last.successor.serves:
                return address, watch
            await watch.close()
            address = address_of(watch.last.successor, address)
        message = f"{self._first.topic_prefix} was replaced more than {MAX_SUCCESSORS} times, or by itself"
        raise MemoryUnreachable(f"{message}: connect with the prefix of the deployment that serves")

    async def _follow(self, address: DeploymentAddress, watch: Watch) -> None:
        try:
            notice = watch.last
            while True:
                if notice is not None and notice.successor.serves:
                    await watch.close()
                    address, watch = await self._move_to(address_of(notice.successor, address))
                    notice = watch.last
                elif (notice := await self._next_notice(notice, watch)) is None:
                    return
        except Exception as problem:
            log.exception("can't follow the switch of %s: calls fail", self._first.topic_prefix)
            self._failure = problem
            self._serving.set()
        finally:
            await watch.close()

    async def _next_notice(self, notice: SuccessorNotice | None, watch: Watch) -> SuccessorNotice | None:
        """Return the next notice; hold calls back while the present one pauses them."""
        upcoming = asyncio.create_task(watch.next())
        try:
            if notice is not None and (left_s := notice.pauses_until - time.monotonic()) > 0:
                self._serving.clear()
                if (await asyncio.wait({upcoming}, timeout=left_s))[0]:
                    if (ended_by := await upcoming) is not None:
                        return ended_by
                    # None tells nothing of the switch: the pause lasts on.
                    await asyncio.sleep(notice.pauses_until - time.monotonic())
            self._serving.set()
            return await upcoming
        finally:
            upcoming.cancel()
            await asyncio.wait({upcoming})

    async def _move_to(self, address: DeploymentAddress) -> tuple[DeploymentAddress, Watch]:
        """Connect to a successor, however long that takes; nothing is sent meanwhile."""
        self._serving.clear()
        address, watch, transport = await self._open_serving(address)
        former, self._transport = self._transport, DrainingTransport(transport)
        self._serving.set()
        if former is not None:
            closing = asyncio.create_task(former.close_when_idle())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        return address, watch

    async def _open_serving(self, address: DeploymentAddress) -> tuple[DeploymentAddress, Watch, KafkaTransport]:
        """Find the deployment that serves and connect to it; try again until that is done."""
        while True:
            address, watch = await self._find_serving(address)
            transport = self._connect(address)
            try:
                await transport.open()
            except BaseException as problem:
                await transport.close()
                await watch.close()
                if not isinstance(problem, MemoryClientError):
                    raise
                await asyncio.sleep(RETRY_INTERVAL_S)
            else:
                return address, watch, transport
