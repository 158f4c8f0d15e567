"""The wire to the deployment that serves: to the one that replaces it, once that does.

Guaranteed: nothing is sent while a switch pauses gateways, nor to a deployment of which is known that it was replaced;
calls wait for the end of a pause within their time. What was sent before is answered, or fails after `DRAIN_S`.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Self

from modestream_client.answers import Reply
from modestream_client.failures import MemoryTimeout, MemoryUnreachable
from modestream_client.records import Written

from gateway.connection_settings import ConnectionSettings
from gateway.service.wire import Json, Wire
from gateway.wire.deployment_record import CircularSuccession, DeploymentRecord, Succession
from gateway.wire.follow import Cluster
from gateway.wire.kafka import KafkaWire

log = logging.getLogger(__name__)

DRAIN_S = 2.0
"""Seconds that calls under way may take once their deployment is being replaced."""

Connect = Callable[[ConnectionSettings], tuple[DeploymentRecord, KafkaWire]]
"""Makes the record of a deployment, and the wire to it, which connects once the record says that it serves."""


class ServingWire:
    """Implements `gateway.service.wire.Wire`, as `async with ServingWire(…) as wire`."""

    def __init__(self, settings: ConnectionSettings, connect: Connect) -> None:
        self._settings = settings
        self._connect = connect
        self._wire: KafkaWire | None = None
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._calls = 0
        self._failure: str | None = None
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin to connect; returns at once."""
        self._running = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    async def request(
        self, topic: str, value: Json, *, principal: str | None, timeout: float, deadline: bool = True
    ) -> tuple[Reply, Written]:
        """Send a record and wait for its reply."""
        async with self._call(timeout) as (wire, left):
            return await wire.request(topic, value, principal=principal, timeout=left, deadline=deadline)

    async def write(self, topic: str, value: Json, *, principal: str | None, timeout: float) -> Written:
        """Send a record and wait until Kafka has it."""
        async with self._call(timeout) as (wire, left):
            return await wire.write(topic, value, principal=principal, timeout=left)

    async def partition_of(self, user_id: str) -> int:
        """Return the partition of the user's records."""
        async with self._call(DRAIN_S) as (wire, _):
            return await wire.partition_of(user_id)

    @asynccontextmanager
    async def _call(self, timeout: float) -> AsyncIterator[tuple[Wire, float]]:
        """Yield the wire to the deployment that serves, and the seconds left. Raises MemoryClientError."""
        clock = asyncio.get_running_loop().time
        ends = clock() + timeout
        try:
            async with asyncio.timeout_at(ends):
                while self._wire is None and self._failure is None:
                    await self._changed.wait()
        except TimeoutError:
            message = f"the deployment was being replaced for {timeout:g} s, and nothing was sent: try again"
            raise MemoryTimeout(message, is_written=False) from None
        if self._wire is None:
            raise MemoryUnreachable(self._failure or "not connected")
        self._calls += 1
        self._idle.clear()
        try:
            yield self._wire, max(0.001, ends - clock())
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def _run(self) -> None:
        settings, succession = self._settings, Succession(Cluster.of(self._settings))
        while True:
            record, connecting = self._connect(settings)
            async with record.following(), connecting as wire:
                self._set(wire)
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

    def _set(self, wire: KafkaWire | None) -> None:
        self._wire = wire
        self._changed.set()
        self._changed = asyncio.Event()

    def _fail(self, reason: str) -> None:
        log.error("%s", reason)
        self._failure = reason
        self._changed.set()
