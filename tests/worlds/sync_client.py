"""A client without `await` of the in-memory pipeline, for threads other than that of the pipeline's event loop."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from modestream_client import MemoryCalls, Reply, Written
from modestream_client.sync import SyncMemoryCalls
from modestream_client.transport import Json, ReadAfter

from tests.worlds.in_memory_client import InMemoryTransport
from tests.worlds.in_memory_pipeline import InMemoryPipeline

T = TypeVar("T")


class ForeignLoopTransport:
    """Implements `Transport`; every method runs in the event loop that this was made in."""

    def __init__(self, transport: InMemoryTransport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()

    async def open(self) -> None:
        """Do nothing: the pipeline runs."""

    async def close(self) -> None:
        """Do nothing."""

    async def resolve_read_after(self, user_id: str, read_after: ReadAfter) -> int | str | None:
        """Return the offset to read after."""
        return await self._there(self._transport.resolve_read_after(user_id, read_after))

    async def write(self, topic: str, record: Json, **how: Any) -> Written:
        """Write a record."""
        return await self._there(self._transport.write(topic, record, **how))

    async def request(self, topic: str, record: Json, **how: Any) -> tuple[Reply, Written]:
        """Write a record and wait for its reply."""
        return await self._there(self._transport.request(topic, record, **how))

    async def _there(self, call: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call, self._loop))


def sync_client_of(pipeline: InMemoryPipeline, user_id: str) -> SyncMemoryCalls:
    """Return a client of a user, not yet open, from inside the pipeline's event loop."""
    return SyncMemoryCalls(MemoryCalls(ForeignLoopTransport(InMemoryTransport(pipeline)), user_id=user_id))
