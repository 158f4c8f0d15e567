"""The Model Context Protocol over the in-memory pipeline, asked by the official client: in process, and over HTTP."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from mcp import Client

from gateway.connection_settings import USUAL_TOOLS
from gateway.http.app import create_app
from gateway.http.identity import Callers
from gateway.mcp.router import McpRouter
from gateway.mcp.server import build_server
from gateway.mcp.tools import ToolRequest
from gateway.service.calls import Backend, Call, Caller
from gateway.service.service import MemoryService

REVISIONS = {"2026-07-28": "auto", "2025-11-25": "legacy"}
"""The revisions, and how the official client is told to speak each."""


@asynccontextmanager
async def in_process(
    wire: Backend,
    user: str = "u1",
    *,
    revision: str = "2026-07-28",
    project: str = "default",
    tools: Collection[str] = USUAL_TOOLS,
    wait_s: float = 10.0,
) -> AsyncIterator[Client]:
    """A session of one user, without a transport."""

    def request_of(_: Any) -> ToolRequest:
        return ToolRequest(Call.within(Caller(), user, wait_s), project)

    server = build_server(MemoryService(wire), request_of, tools)
    async with Client(server, mode=REVISIONS[revision]) as session:
        assert session.protocol_version == revision
        yield session


@asynccontextmanager
async def over_http(wire: Backend, callers: Callers | None = None) -> AsyncIterator[str]:
    """The gateway at a free port of loopback; yields its address."""
    service = MemoryService(wire)
    door = McpRouter(service)
    app = create_app(service, _ready, callers=callers, running=[door.running], routes=door.routes)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await serving


async def answer(session: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await session.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content: dict[str, Any] | None = result.structured_content
    assert content is not None
    assert json.loads(result.content[0].text) == content  # type: ignore[union-attr]
    return content


async def error(session: Client, tool: str, **arguments: Any) -> str:
    result = await session.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return str(result.content[0].text)  # type: ignore[union-attr]


async def _ready() -> bool:
    return True
