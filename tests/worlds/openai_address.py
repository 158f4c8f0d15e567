"""OpenAI's address at a real socket, over any service, before a provider that a test prepares."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from gateway.http.app import create_app
from gateway.openai.memory import Outbox
from gateway.openai.provider import Provider
from gateway.openai.routes import OpenAiDoor, OpenAiErrors
from gateway.server import server_of
from gateway.service.meters import Meters
from gateway.service.service import MemoryService
from tests.fakes.provider import FakeProvider
from tests.worlds.gateway import always_ready

COMPLETIONS = "/openai/v1/chat/completions"
KEY = "provider-key"


@dataclass
class OpenAiAddress:
    """The address: its HTTP client, its provider, its metrics, and the turns that wait."""

    http: httpx.AsyncClient
    provider: FakeProvider
    meters: Meters
    outbox: Outbox

    async def ask(self, content: Any = "Tea or coffee?", user: str | None = "u1", **how: Any) -> httpx.Response:
        """Ask for a completion; `how` are header fields without `x-modestream-`, and `fields` of the body."""
        fields = how.pop("fields", {})
        messages = [{"role": "user", "content": content}] if isinstance(content, str) else content
        return await self.post({"model": "m", "messages": messages, **fields}, user, **how)

    async def post(self, body: Any, user: str | None = "u1", **how: str) -> httpx.Response:
        """Send a body: bytes as they are, or JSON."""
        named = {} if user is None else {"user": user}
        headers = {f"x-modestream-{name}": text for name, text in (named | how).items()}
        sent: dict[str, Any] = {"content": body} if isinstance(body, bytes) else {"json": body}
        return await self.http.post(COMPLETIONS, headers=headers, **sent)

    def count(self, name: str, **labels: str) -> float | None:
        return self.meters.registry.get_sample_value(f"modestream_gateway_openai_{name}", labels)


@asynccontextmanager
async def openai_address(
    service: MemoryService,
    *,
    has_provider: bool = True,
    outbox: Outbox | None = None,
    has_api: bool = False,
    **how: Any,
) -> AsyncIterator[OpenAiAddress]:
    meters = Meters()
    outbox = outbox or Outbox(meters)
    async with FakeProvider() as fake:
        door = OpenAiDoor(service, Provider(fake.url if has_provider else None, KEY), outbox, meters)
        app = create_app(
            service, always_ready, meters=meters, routes=door.routes, running=[door.running], has_api=has_api, **how
        )
        app.add_middleware(OpenAiErrors)
        server = server_of(app)
        listening = socket.create_server(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:
            await asyncio.sleep(0.01)
        try:
            async with httpx.AsyncClient(base_url=url) as client:
                yield OpenAiAddress(client, fake, meters, outbox)
        finally:
            server.should_exit = True
            await serving
