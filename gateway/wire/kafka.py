"""The wire over Kafka: one `MemoryClient` for all callers, opened as soon as there is a broker.

Guaranteed: starts without a broker, and serves as soon as there is one; a broker that goes away and comes back needs no
restart. Until it is open, requests raise `MemoryUnreachable`.
"""

import asyncio
import logging
from contextlib import AsyncExitStack, suppress
from types import TracebackType
from typing import Any, Self

from modestream_client import MemoryClient
from modestream_client.answers import Reply
from modestream_client.failures import MemoryClientError, MemoryUnreachable
from modestream_client.requests import Written

from gateway.service.wire import Json

log = logging.getLogger(__name__)

RETRY_S = 1.0
"""The pause between two attempts to open the connection."""


class KafkaWire:
    """Implements `gateway.service.wire.Wire`, as `async with KafkaWire(…) as wire`."""

    def __init__(self, bootstrap: str, topic_prefix: str) -> None:
        self._bootstrap = bootstrap
        self._topic_prefix = topic_prefix
        self._client: MemoryClient | None = None
        self._exit = AsyncExitStack()
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
        self._client = None
        await self._exit.aclose()

    async def request(
        self, topic: str, value: Json, *, principal: str | None, timeout: float, deadline: bool = True
    ) -> tuple[Reply, Written]:
        """Send a record and wait for its reply."""
        signed: Any = {} if principal is None else {"principal": principal}
        return await self._connected().request(topic, value, timeout=timeout, deadline=deadline, **signed)

    async def partition_of(self, user_id: str) -> int:
        """Return the partition of the user's records."""
        return await self._connected().partition_of(user_id)

    def _connected(self) -> MemoryClient:
        if self._client is None:
            raise MemoryUnreachable("not connected yet")
        return self._client

    async def _open(self) -> None:
        while self._client is None:
            client = MemoryClient(self._bootstrap, topic_prefix=self._topic_prefix)
            try:
                self._client = await self._exit.enter_async_context(client)
            except MemoryClientError as error:
                log.warning("not connected: %s", error)
                # A failed opening leaves nothing open that the next attempt would need.
                await client.__aexit__(None, None, None)
                await asyncio.sleep(RETRY_S)
