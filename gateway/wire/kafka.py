"""The wire over Kafka: one connection for all callers, opened as soon as there is a broker.

Guaranteed: starts without a broker, and serves as soon as there is one; a broker that goes away and comes back needs no
restart. Until it is open, requests raise `MemoryUnreachable`.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from modestream_client.answers import Reply
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.failures import MemoryClientError, MemoryUnreachable
from modestream_client.kafka.client import KafkaTransport
from modestream_client.kafka.security import KafkaSecurity
from modestream_client.records import Written

from gateway.service.tracing import carried_headers
from gateway.service.wire import Json

log = logging.getLogger(__name__)

CONNECT_S = 10.0
"""Limit of one attempt to connect; every request has a limit of its own."""

RETRY_S = 1.0
"""The pause between two attempts to open the connection."""


class KafkaWire:
    """Implements `gateway.service.wire.Wire`, as `async with KafkaWire(…) as wire`."""

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
        """Begin to connect; returns at once."""
        self._opening = asyncio.create_task(self._open())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Disconnect; waiting requests raise `MemoryClosed`."""
        if self._opening is not None:
            self._opening.cancel()
            with suppress(asyncio.CancelledError):
                await self._opening
        if self._transport is not None:
            transport, self._transport = self._transport, None
            await transport.close()

    async def request(
        self, topic: str, value: Json, *, principal: str | None, timeout: float, deadline: bool = True
    ) -> tuple[Reply, Written]:
        """Send a record and wait for its reply."""
        transport = await self._connected(timeout)
        return await transport.request(topic, value, principal=principal, timeout=timeout, deadline=deadline)

    async def write(self, topic: str, value: Json, *, principal: str | None, timeout: float) -> Written:
        """Send a record and wait until Kafka has it."""
        transport = await self._connected(timeout)
        return await transport.write(topic, value, principal=principal, timeout=timeout)

    async def partition_of(self, user_id: str) -> int:
        """Return the partition of the user's records."""
        return await (await self._connected(self._patience_s)).partition_of(user_id)

    async def _connected(self, timeout: float) -> KafkaTransport:
        if self._transport is None and (patience_s := min(timeout, self._patience_s)) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._opened.wait(), patience_s)
        if self._transport is None:
            raise MemoryUnreachable("not connected yet")
        return self._transport

    def _new_transport(self) -> KafkaTransport:
        return KafkaTransport(
            self._bootstrap,
            self._topic_prefix,
            CONNECT_S,
            headers=carried_headers,
            security=self._security,
            boundary=self._boundary_fields,
        )

    async def _open(self) -> None:
        if self._until_serving is not None:
            await self._until_serving()
        while self._transport is None:
            transport = self._new_transport()
            try:
                await transport.open()
            except MemoryClientError as error:
                log.warning("not connected: %s", error)
                await transport.close()
                await asyncio.sleep(RETRY_S)
            else:
                self._transport = transport
                self._opened.set()
