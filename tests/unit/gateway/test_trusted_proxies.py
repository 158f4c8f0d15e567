"""The address of a caller behind a proxy: `X-Forwarded-For` is believed from trusted proxies alone."""

import asyncio
import socket
from typing import Any

import httpx
import pytest
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from gateway.http.connections import Connections
from gateway.server import server_of
from gateway.settings import GatewaySettings


async def tell_address(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that answers with the address of its caller."""
    client = Request(scope).client
    await PlainTextResponse(client.host if client else "")(scope, receive, send)


async def address_seen(trusted_proxies: tuple[str, ...]) -> str:
    """Return the address that a gateway has of a caller on loopback that names another one."""
    app: Any = tell_address
    server = server_of(app, Connections(trusted_proxies=trusted_proxies))
    server.config.lifespan = "off"
    listening = socket.create_server(("127.0.0.1", 0))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        async with httpx.AsyncClient() as client:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
            return (await client.get(url, headers={"X-Forwarded-For": "203.0.113.7"})).text
    finally:
        server.should_exit = True
        await serving


async def test_nobody_is_believed_by_default() -> None:
    assert await address_seen(()) == "127.0.0.1"


async def test_a_trusted_proxy_is_believed() -> None:
    assert await address_seen(("127.0.0.1",)) == "203.0.113.7"


async def test_a_proxy_of_a_trusted_network_is_believed() -> None:
    assert await address_seen(("127.0.0.0/8",)) == "203.0.113.7"


async def test_another_proxy_is_not_believed() -> None:
    assert await address_seen(("10.0.0.0/8",)) == "127.0.0.1"


def test_what_is_no_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODESTREAM_GATEWAY_TRUSTED_PROXIES", "10.0.0.0/8, proxy.example")
    with pytest.raises(ValidationError, match=r"proxy\.example"):
        GatewaySettings(_env_file=None)
