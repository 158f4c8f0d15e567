"""Connections at a real socket: a caller that stops reading is cut off, costs a bounded buffer, and delays no other."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from gateway.http.app import create_app
from gateway.http.connections import Connection
from gateway.http.limits import Limits
from gateway.server import server_of
from gateway.service.events import TOPICS, Feed
from gateway.service.meters import Meters
from gateway.service.service import MemoryService
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import always_ready

EVENTS = "/v1/users/u1/events"

MANY = 1_500
"""Events of some 250 bytes: more than all buffers of a connection and the feed hold."""

MAX_WAITING = 200
"""Events that wait for one listener."""

SOCKET_BYTES = 4096
"""The kernel's buffers of a connection, on each side; it takes twice of that."""

MAX_BUFFERED = 150_000
"""Bytes that a caller still gets after it has stopped: the kernel's, and the 64 KiB of the HTTP library."""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connection, "stalled_s", 0.5)


@asynccontextmanager
async def served(feed: Feed, meters: Meters) -> AsyncIterator[tuple[str, int]]:
    """The gateway at a port of loopback, with room for two streams."""
    service, limits = MemoryService(FakeWire(), feed=feed), Limits(open_streams=2)
    server = server_of(create_app(service, always_ready, limits=limits, meters=meters))
    listening = socket.create_server(("127.0.0.1", 0))
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BYTES)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield listening.getsockname()
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def stopped_listener(address: tuple[str, int], path: str) -> AsyncIterator[socket.socket]:
    """A caller that has asked, and has read the first bytes alone."""
    loop = asyncio.get_running_loop()
    with socket.socket() as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BYTES)
        caller.setblocking(False)
        await loop.sock_connect(caller, address)
        await loop.sock_sendall(caller, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert (await loop.sock_recv(caller, 12)) == b"HTTP/1.1 200"
        yield caller


async def tell(feed: Feed, first: int, last: int) -> None:
    """Let something happen to each of these memories, with a pause for the listeners."""
    for number in range(first, last):
        scope = {"user_id": "u1", "project_id": "p1"}
        memory = {"memory_id": f"m{number}", "mode": "general", "boundary": "u1", "scope": scope, "versions": [{}]}
        record = json.dumps({"schema": "remembered.v1", "memory": memory}).encode()
        feed.take(TOPICS[0], 1, number, 1_000, b"u1", record)
    await asyncio.sleep(0.01)


async def hear(address: tuple[str, int], ids: list[str], listening: asyncio.Event) -> None:
    """Listen until all memories were told of, and note them."""
    host, port = address
    async with httpx.AsyncClient() as http, http.stream("GET", f"http://{host}:{port}{EVENTS}") as answer:
        async for line in answer.aiter_lines():
            listening.set()
            if line.startswith("data: ") and '"remembered"' in line:
                ids.append(json.loads(line[6:])["memory_id"])
                if len(ids) == MANY:
                    return


async def received(caller: socket.socket) -> int:
    """Read all that is left until the connection ends; return the bytes."""
    loop, total = asyncio.get_running_loop(), 0
    try:
        while chunk := await loop.sock_recv(caller, 1 << 20):
            total += len(chunk)
    except ConnectionResetError:
        pass
    return total


async def test_a_listener_that_stops_is_cut_off_and_others_hear_all() -> None:
    feed, meters, listening = Feed(max_waiting=MAX_WAITING), Meters(), asyncio.Event()
    ids: list[str] = []
    async with served(feed, meters) as address, stopped_listener(address, EVENTS) as slow:
        other = asyncio.create_task(hear(address, ids, listening))
        await listening.wait()
        assert meters.registry.get_sample_value("modestream_gateway_open_streams") == 2
        for start in range(0, MANY, 100):
            await tell(feed, start, start + 100)
            while len(ids) < start:
                await asyncio.sleep(0.001)
        await other
        assert ids == [f"m{number}" for number in range(MANY)]
        async with asyncio.timeout(10):
            while meters.registry.get_sample_value("modestream_gateway_open_streams"):
                await asyncio.sleep(0.05)
        assert await asyncio.wait_for(received(slow), 10) < MAX_BUFFERED


async def test_spaces_around_a_header_are_no_part_of_it() -> None:
    async with served(Feed(), Meters()) as address:
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET /live HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: \t r-1 \t \r\nConnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
    assert b"x-request-id: r-1\r\n" in answer.lower()
