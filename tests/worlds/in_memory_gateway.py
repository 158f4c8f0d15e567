"""The gateway in front of the in-memory pipeline: the real app, over a wire of topics in memory, with no socket."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import httpx
from modestream_client import HttpMemoryClient
from modestream_client.calls import MemoryCalls
from modestream_client.http.client import HttpTransport

from gateway.http.app import create_app
from gateway.service.service import MemoryService
from tests.worlds.in_memory_client import TIMEOUT_S, InMemoryTransport
from tests.worlds.in_memory_pipeline import InMemoryPipeline

URL = "http://127.0.0.1"


async def _is_ready() -> bool:
    return True


class SharedHttpClient(HttpMemoryClient):
    """A client over a transport that is open already, so that one gateway serves clients of many users."""

    def __init__(self, transport: HttpTransport, user_id: str) -> None:
        self._http = transport
        MemoryCalls.__init__(self, transport, user_id=user_id)


@asynccontextmanager
async def http_clients_of(pipeline: InMemoryPipeline) -> AsyncIterator[Callable[[str], HttpMemoryClient]]:
    """Yield what returns a client of a user, through one gateway."""
    app = create_app(MemoryService(InMemoryTransport(pipeline)), _is_ready)
    async with AsyncExitStack() as stack:
        connections = await stack.enter_async_context(httpx.AsyncClient(transport=httpx.ASGITransport(app)))
        transport = HttpTransport(URL, None, TIMEOUT_S, None, connections)
        await transport.open()
        stack.push_async_callback(transport.close)
        yield lambda user_id: SharedHttpClient(transport, user_id)
