"""How a gateway listens: its event loop, its signals, and the addresses that proxies report."""

import asyncio
import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from anyio.to_thread import current_default_thread_limiter
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from gateway.http.connections import Connections
from gateway.keys.key_file import KeyFile
from gateway.server import run_gateway, server_of
from gateway.settings import GatewaySettings


@pytest.fixture
def taken() -> Iterator[str]:
    """An address that another process listens at: a gateway ends there."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


def warnings_of(caplog: pytest.LogCaptureFixture, taken: str, **given: Any) -> list[str]:
    with caplog.at_level(logging.WARNING, "gateway.server"):
        assert run_gateway(GatewaySettings(_env_file=None, gateway_bind=taken, **given)) == os.EX_UNAVAILABLE
    return [
        record.getMessage()
        for record in caplog.records
        if (record.name, record.levelno) == ("gateway.server", logging.WARNING)
    ]


def test_gateway_without_keys_says_what_every_caller_may(caplog: pytest.LogCaptureFixture, taken: str) -> None:
    [warning] = warnings_of(caplog, taken)
    assert "edit the pipelines" in warning


def test_gateway_with_keys_does_not(caplog: pytest.LogCaptureFixture, taken: str, tmp_path: Path) -> None:
    KeyFile(keys=()).write(tmp_path / "keys.json")
    assert warnings_of(caplog, taken, gateway_keys=tmp_path / "keys.json") == []


TURN = {"conversation_id": "c1", "role": "user", "content": "The kettle is blue."}


async def test_requests_need_no_thread(http: httpx.AsyncClient) -> None:
    threads = current_default_thread_limiter()
    usual, threads.total_tokens = threads.total_tokens, 1
    try:
        async with threads, asyncio.timeout(5):
            answers = [
                await http.post("/v1/users/u1/turns", json=TURN),
                await http.get("/v1/users/u1/memories"),
                await http.post("/v1/users/u1/jobs/reconcile", json={}),
                await http.get("/v1/me"),
                await http.get("/v1/users"),
            ]
    finally:
        threads.total_tokens = usual
    assert [answer.status_code < 300 for answer in answers] == [True] * len(answers)


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


@pytest.mark.parametrize(
    ("trusted", "address"),
    [
        ((), "127.0.0.1"),
        (("127.0.0.1",), "203.0.113.7"),
        (("127.0.0.0/8",), "203.0.113.7"),
        (("10.0.0.0/8",), "127.0.0.1"),
    ],
    ids=["nobody by default", "a trusted proxy", "a proxy of a trusted network", "another proxy"],
)
async def test_only_a_trusted_proxy_is_believed(trusted: tuple[str, ...], address: str) -> None:
    assert await address_seen(trusted) == address


def test_what_is_no_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODESTREAM_GATEWAY_TRUSTED_PROXIES", "10.0.0.0/8, proxy.example")
    with pytest.raises(ValidationError, match=r"proxy\.example"):
        GatewaySettings(_env_file=None)
