"""A connection that is closed once the calls on it have ended, each with its answer or its timeout."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from modestream_client.kafka.transport import KafkaTransport


class DrainingTransport:
    """An open connection, and how many calls are under way on it. Belongs to one event loop."""

    def __init__(self, transport: KafkaTransport) -> None:
        self.transport = transport
        self._calls = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @contextmanager
    def call(self) -> Iterator[KafkaTransport]:
        """Return the connection for one call, which ends with the block."""
        self._calls += 1
        self._idle.clear()
        try:
            yield self.transport
        finally:
            self._calls -= 1
            if not self._calls:
                self._idle.set()

    async def close_when_idle(self) -> None:
        """Wait for the end of the calls, and disconnect. Cancelled, it fails them with `MemoryClosed`."""
        try:
            await self._idle.wait()
        finally:
            await self.transport.close()
