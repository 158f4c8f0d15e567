"""Requests over Kafka: one connection for all callers, measured, to the deployment that serves.

Guaranteed: starts without a broker, and serves as soon as there is one; an outage of the broker needs no restart. Until
the connection is open, requests raise `MemoryUnreachable`. `ServingBackend` follows the successor of a deployment:
nothing is sent during a switch's pause, nor to a deployment known to be replaced; calls wait for the end of a pause
within their time. Earlier requests are answered, or fail after `DRAIN_S`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Self, Unpack

from modestream_client.answers import Reply
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.failures import MemoryClientError, MemoryTimeout, MemoryUnreachable
from modestream_client.kafka.client import KafkaTransport
from modestream_client.kafka.security import KafkaSecurity
from modestream_client.records import Written

from gateway.backend.deployment_record import CircularSuccession, DeploymentRecord, Succession
from gateway.backend.followers import Cluster
from gateway.connection_settings import ConnectionSettings
from gateway.service.calls import Backend, Json, Sending
from gateway.service.meters import Meters
from gateway.service.tracing import carried_headers

log = logging.getLogger(__name__)

CONNECT_S = 10.0
"""Limit of one attempt to connect; every request has its own limit."""

RETRY_S = 1.0
"""Pause between two attempts to open the connection."""


class KafkaBackend:
    """Implements `gateway.service.calls.Backend`, as `async with KafkaBackend(…) as backend`."""

    def __init__(
        self,
        bootstrap: str,
        topic_prefix: str,
        security: KafkaSecurity | None = None,
        *,
        patience_s: float = 0,
        boundary_fields: BoundaryFields = USER_BOUNDARY,
        until_serving: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`patience_s`: seconds that requests wait for the first connection before they are refused.

        It is not opened before `until_serving` has returned.
        """
        self._until_serving = until_serving
        self._boundary_fields = boundary_fields
        self._patience_s = patience_s
        self._opened = asyncio.Event()
        self._bootstrap = bootstrap
        self._topic_prefix = topic_prefix
        self._security = security
        self._transport: KafkaTransport | None = None
        self._opening: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Start to connect; returns at once."""
        self._opening = asyncio.create_task(self._open())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Disconnect; waiting requests raise `MemoryClosed`."""
        if self._opening is not None:
            self._opening.cancel()
            with suppress(asyncio.CancelledError):
                await self._opening
        if self._transport is not None:
            transport, self._transport = self._transport, None
            await transport.close()

    async def request(self, topic: str, value: Json, **sending: Unpack[Sending]) -> tuple[Reply, Written]:
        transport = await self._connected(sending["timeout"])
        return await transport.request(topic, value, **sending)

    async def write(self, topic: str, value: Json, *, principal: str | None, timeout: float) -> Written:
        transport = await self._connected(timeout)
        return await transport.write(topic, value, principal=principal, timeout=timeout)

    async def partition_of(self, user_id: str) -> int:
        return await (await self._connected(self._patience_s)).partition_of(user_id)

    async def _connected(self, timeout: float) -> KafkaTransport:
        if self._transport is None and (patience_s := min(timeout, self._patience_s)) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._opened.wait(), patience_s)
        if self._transport is None:
            raise MemoryUnreachable("not connected yet")
        return self._transport

    async def _open(self) -> None:
        if self._until_serving is not None:
            await self._until_serving()
        while self._transport is None:
            transport = KafkaTransport(
                self._bootstrap,
                self._topic_prefix,
                CONNECT_S,
                headers=carried_headers,
                security=self._security,
                boundary=self._boundary_fields,
            )
            try:
                await transport.open()
            except MemoryClientError as error:
                log.warning("not connected: %s", error)
                await transport.close()
                await asyncio.sleep(RETRY_S)
            else:
                self._transport = transport
                self._opened.set()


class MeasuredBackend:
    """Implements `gateway.service.calls.Backend` over another one."""

    def __init__(self, backend: Backend, meters: Meters) -> None:
        self._backend = backend
        self._meters = meters

    async def request(self, topic: str, value: Json, **sending: Unpack[Sending]) -> tuple[Reply, Written]:
        with self._meters.round_trip(topic):
            return await self._backend.request(topic, value, **sending)

    async def write(self, topic: str, value: Json, *, principal: str | None, timeout: float) -> Written:
        with self._meters.round_trip(topic):
            return await self._backend.write(topic, value, principal=principal, timeout=timeout)

    async def partition_of(self, user_id: str) -> int:
        return await self._backend.partition_of(user_id)


DRAIN_S = 2.0
"""Seconds for calls in flight once their deployment is being replaced."""

Connect = Callable[[ConnectionSettings], tuple[DeploymentRecord, KafkaBackend]]
"""Makes the record of a deployment, and the backend to it, which connects once the record says that it serves."""


class ServingBackend:
    """Implements `gateway.service.calls.Backend`, as `async with ServingBackend(…) as backend`."""

    def __init__(self, settings: ConnectionSettings, connect: Connect) -> None:
        self._settings = settings
        self._connect = connect
        self._backend: KafkaBackend | None = None
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._calls = 0
        self._failure: str | None = None
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    async def request(self, topic: str, value: Json, **sending: Unpack[Sending]) -> tuple[Reply, Written]:
        # The call's own copy of its keywords gets the time that is left.
        async with self._call(sending["timeout"]) as (backend, sending["timeout"]):
            return await backend.request(topic, value, **sending)

    async def write(self, topic: str, value: Json, *, principal: str | None, timeout: float) -> Written:
        async with self._call(timeout) as (backend, left):
            return await backend.write(topic, value, principal=principal, timeout=left)

    async def partition_of(self, user_id: str) -> int:
        async with self._call(DRAIN_S) as (backend, _):
            return await backend.partition_of(user_id)

    @asynccontextmanager
    async def _call(self, timeout: float) -> AsyncIterator[tuple[Backend, float]]:
        """Yield the backend to the deployment that serves, and the seconds left. Raises MemoryClientError."""
        clock = asyncio.get_running_loop().time
        ends = clock() + timeout
        try:
            async with asyncio.timeout_at(ends):
                while self._backend is None and self._failure is None:
                    await self._changed.wait()
        except TimeoutError:
            message = f"the deployment was being replaced for {timeout:g} s, and nothing was sent: try again"
            raise MemoryTimeout(message, is_written=False) from None
        if self._backend is None:
            raise MemoryUnreachable(self._failure or "not connected")
        self._calls += 1
        self._idle.clear()
        try:
            yield self._backend, max(0.001, ends - clock())
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def _run(self) -> None:
        settings, succession = self._settings, Succession(Cluster.of(self._settings))
        while True:
            record, connecting = self._connect(settings)
            async with record.following(), connecting as backend:
                self._set(backend)
                await record.until_ended()
                self._set(None)
                with suppress(TimeoutError):
                    async with asyncio.timeout(DRAIN_S):
                        while self._calls:
                            await self._idle.wait()
                await record.until_decided()
            if record.conflict is not None:
                self._fail(record.conflict)
                return
            if record.successor is not None:
                settings = settings.at(record.successor)
                try:
                    succession.follow(Cluster.of(settings))
                except CircularSuccession as circle:
                    self._fail(str(circle))
                    return

    def _set(self, backend: KafkaBackend | None) -> None:
        self._backend = backend
        self._changed.set()
        self._changed = asyncio.Event()

    def _fail(self, reason: str) -> None:
        log.error("%s", reason)
        self._failure = reason
        self._changed.set()
