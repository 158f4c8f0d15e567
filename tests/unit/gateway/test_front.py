"""The front at a real socket: what one sender sends without end, slowly, or too much of, costs that sender alone."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from starlette.datastructures import Headers

from gateway.http.app import create_app
from gateway.http.connections import Connections
from gateway.http.limits import MAX_BODY_BYTES, MAX_FORM_BYTES, Limits, seconds_of_body
from gateway.server import granted_descriptors, server_of
from gateway.service.calls import Caller, Json, Refused
from gateway.service.meters import Meters
from gateway.service.service import MemoryService
from schemas.messages.decoding import MAX_VALUES
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import always_ready

LIVE = b"GET /live HTTP/1.1\r\nHost: localhost\r\n"
SEARCH = "/v1/users/u1/memories/search"
TURNS = "/v1/users/u1/turns"

SOON = 0.2
"""A time limit for callers that keep it never; what others send meanwhile is there at once."""

NEVER = 3600.0
ENOUGH_S = 20.0
"""What no answer takes, however busy the machine is."""


class Names:
    """Callers by the header X-API-Key; `nobody` is none."""

    async def caller_of(self, headers: Headers, address: str) -> Caller:
        name = headers.get("x-api-key", "nobody")
        if name == "nobody":
            raise Refused("unauthenticated", "who are you?")
        return Caller(name, name)


class Served:
    """The gateway at a port of loopback."""

    def __init__(self, address: tuple[str, int], meters: Meters) -> None:
        self._address = address
        self._meters = meters
        self._open: list[asyncio.StreamWriter] = []

    async def connect(self, sent: bytes = b"", source: str = "127.0.0.1") -> asyncio.StreamReader:
        """Open a connection, which stays open, and send something."""
        reader, writer = await asyncio.open_connection(*self._address, local_addr=(source, 0))
        self._open.append(writer)
        writer.write(sent)
        return reader

    async def send_until_answered(self, begin: bytes, more: bytes) -> tuple[int, str]:
        """Send a beginning, then more and more of the same; return what ends it."""
        reader = await self.connect(begin)
        writer, answer = self._open[-1], asyncio.create_task(answered(reader))
        while not answer.done():
            writer.write(more)
            try:
                await writer.drain()
            except ConnectionError:
                break
            await asyncio.sleep(0)
        return await answer

    async def ask(self, head: bytes, body: bytes = b"", source: str = "127.0.0.1") -> tuple[int, str]:
        """Send a whole request on a connection of its own; return status and code."""
        return await answered(await self.connect(head + b"\r\n" + body, source))

    def limited(self, limit: str) -> float | None:
        """How often a limit has refused something."""
        return self._meters.registry.get_sample_value("modestream_gateway_limited_total", {"limit": limit})

    def close(self) -> None:
        """Hang up everywhere."""
        for writer in self._open:
            writer.transport.abort()
        self._open.clear()


@asynccontextmanager
async def serving(wire: FakeWire | None = None, app: Json | None = None, **limits: Any) -> AsyncIterator[Served]:
    bounds, meters = Limits(**{"header_seconds": NEVER, "body_seconds": NEVER} | limits), Meters()
    service = MemoryService(wire or FakeWire())
    server = server_of(
        create_app(service, always_ready, limits=bounds, meters=meters, **app or {}), Connections(bounds, meters)
    )
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    running = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    served = Served(listening.getsockname(), meters)
    try:
        yield served
    finally:
        served.close()
        server.should_exit = True
        await running


async def answered(reader: asyncio.StreamReader) -> tuple[int, str]:
    """Read one answer; return its status and its code; 0 for a connection that ends without one."""
    try:
        async with asyncio.timeout(ENOUGH_S):
            head = await reader.readuntil(b"\r\n\r\n")
            status, headers = int(head[9:12]), head.lower().split(b"\r\n")
            size = next(int(line[15:]) for line in headers if line.startswith(b"content-length:"))
            body = json.loads(await reader.readexactly(size) or b"{}")
    except (ConnectionError, asyncio.IncompleteReadError):
        return 0, ""
    return status, body.get("code", "")


def post(path: str, size: int, *fields: str) -> bytes:
    """The head of a request with a body, without its end."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {size}", *fields]
    return "".join(f"{line}\r\n" for line in lines).encode()


async def until(happens: Callable[[], object]) -> None:
    async with asyncio.timeout(ENOUGH_S):
        while not happens():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        (LIVE, b"X-Many: field\r\n" * 10),
        (LIVE + b"X-Long: ", b"v" * 10_000),
        (LIVE + b"X-Name", b"n" * 10_000),
        (b"GET /live?", b"u" * 10_000),
    ],
    ids=["fields", "value", "name", "url"],
)
async def test_head_without_end_is_refused(begin: bytes, more: bytes) -> None:
    async with serving() as served:
        assert await served.send_until_answered(begin, more) == (431, "too_large")
        assert (await served.ask(LIVE))[0] == 200


@pytest.mark.parametrize("more", [b"X-Many: field\r\n" * 10, b"X" * 10_000], ids=["fields", "name"])
async def test_fields_after_a_body_without_end_end_the_connection(more: bytes) -> None:
    begin = LIVE + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
    async with serving() as served:
        assert await served.send_until_answered(begin, more) == (0, "")
        assert served.limited("header_bytes") == 1


@pytest.mark.parametrize(("fields", "status"), [(99, 200), (100, 431)])
async def test_number_of_header_fields_is_bounded(fields: int, status: int) -> None:
    async with serving() as served:
        assert (await served.ask(LIVE + b"X-Many: field\r\n" * fields))[0] == status


@pytest.mark.parametrize(("size", "status"), [(60_000, 200), (65_536, 431)])
async def test_size_of_a_whole_head_is_bounded(size: int, status: int) -> None:
    async with serving() as served:
        assert (await served.ask(LIVE + b"X-Long: " + b"v" * size + b"\r\n"))[0] == status


async def test_heads_of_a_pipeline_count_by_themselves() -> None:
    request = LIVE + b"X-Long: " + b"v" * 50_000 + b"\r\n\r\n"
    async with serving() as served:
        reader = await served.connect(request * 4)
        assert [(await answered(reader))[0] for _ in range(4)] == [200] * 4


async def test_slow_head_is_refused() -> None:
    async with serving(header_seconds=SOON) as served:
        assert await answered(await served.connect(LIVE)) == (408, "timeout")


async def test_connection_that_sends_nothing_ends() -> None:
    async with serving(header_seconds=SOON) as served:
        assert await answered(await served.connect()) == (0, "")


@pytest.mark.parametrize("path", [SEARCH, TURNS, "/mcp", "/mcp/users/imports"])
async def test_slow_body_is_refused(path: str) -> None:
    async with serving(body_seconds=SOON) as served:
        assert await served.ask(post(path, 100), b"{") == (408, "timeout")


def test_body_that_keeps_the_least_rate_has_more_time() -> None:
    limits = Limits(body_seconds=30, body_bytes_per_second=1000)
    assert [seconds_of_body(limits, size) for size in (0, 1000, 20_000)] == [30, 31, 50]


async def test_rest_of_a_refused_body_is_waited_for_as_long_as_for_a_head() -> None:
    async with serving(header_seconds=SOON) as served:
        reader = await served.connect(post("/v1/users/u1/nothing", MAX_BODY_BYTES + 1) + b"\r\n{")
        assert await answered(reader) == (413, "too_large")
        assert await asyncio.wait_for(reader.read(), ENOUGH_S) == b""


async def test_many_connections_of_an_address_shut_nobody_out() -> None:
    # Both ends of each connection are in this process.
    granted_descriptors(4096)
    async with serving(connections=2048) as served:
        for _ in range(1_100):
            await served.connect(LIVE)
        assert (await served.ask(LIVE))[0] == 200
        assert (await served.ask(LIVE, source="127.0.0.2"))[0] == 200
        assert served.limited("connections_closed") == 1_100 + 1 - 1_024


async def test_connection_that_waits_longest_gives_way() -> None:
    async with serving(connections_per_address=2) as served:
        first, second = await served.connect(LIVE), await served.connect(LIVE)
        assert (await served.ask(LIVE))[0] == 200
        assert await answered(first) == (0, "")
        assert not second.at_eof()


async def test_connections_of_all_addresses_are_bounded() -> None:
    async with serving(connections=3, connections_per_address=3) as served:
        first = await served.connect(LIVE, "127.0.0.2")
        for _ in range(2):
            await served.connect(LIVE, "127.0.0.3")
        assert (await served.ask(LIVE, source="127.0.0.4"))[0] == 200
        assert await answered(first) == (0, "")


class SlowWire(FakeWire):
    """Answers when it is told; `asked` counts."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.asked = 0

    async def request(self, *record: Any, **how: Any) -> Any:
        self.asked += 1
        await self.go.wait()
        return await super().request(*record, **how)


async def test_connection_whose_request_is_worked_on_gives_no_way() -> None:
    wire = SlowWire()
    async with serving(wire, connections_per_address=1) as served:
        reader = await served.connect(post(SEARCH, 13) + b'\r\n{"query":"q"}')
        await until(lambda: wire.asked)
        assert await served.ask(LIVE) == (503, "unavailable")
        wire.go.set()
        assert (await answered(reader))[0] == 200
        assert (await served.ask(LIVE))[0] == 200


async def test_head_behind_a_request_that_is_worked_on_cuts_no_answer() -> None:
    wire = SlowWire()
    async with serving(wire, header_seconds=SOON) as served:
        reader = await served.connect(post(SEARCH, 13) + b'\r\n{"query":"q"}' + LIVE)
        await until(lambda: wire.asked)
        await asyncio.sleep(2 * SOON)
        wire.go.set()
        assert (await answered(reader))[0] == 200


async def test_upload_is_the_last_to_give_way() -> None:
    async with serving(connections_per_address=2) as served:
        upload = await served.connect(post(TURNS, 100) + b"\r\n{")
        idle = await served.connect(LIVE + b"\r\n")
        assert (await answered(idle))[0] == 200
        served._open[0].write(b" ")
        await asyncio.sleep(SOON)
        assert (await served.ask(LIVE))[0] == 200
        assert await answered(idle) == (0, "")
        served._open[0].write(b" " * 97 + b"}")
        assert (await answered(upload))[0] == 422


async def test_unfinished_bodies_take_no_places() -> None:
    async with serving(in_flight=4) as served:
        for _ in range(8):
            await served.connect(post(TURNS, 100) + b"\r\n{")
        assert (await served.ask(post(SEARCH, 13), b'{"query":"q"}'))[0] == 200


@pytest.mark.parametrize(
    ("app", "fields", "limit"),
    [({"callers": Names()}, ("X-API-Key: a",), "in_flight_per_key"), ({}, (), "in_flight_per_address")],
)
async def test_one_sender_has_a_part_of_what_may_be_under_way(app: Json, fields: tuple[str, ...], limit: str) -> None:
    wire = SlowWire()
    async with serving(wire, app, **{limit: 2}) as served:
        for _ in range(2):
            await served.connect(post(SEARCH, 13, *fields) + b'\r\n{"query":"q"}')
        await until(lambda: wire.asked == 2)
        assert await served.ask(post(SEARCH, 13, *fields), b'{"query":"q"}') == (429, "too_many_requests")
        assert served.limited(limit) == 1
        other = asyncio.create_task(served.ask(post(SEARCH, 13, "X-API-Key: b"), b'{"query":"q"}', source="127.0.0.2"))
        await until(lambda: wire.asked == 3)
        wire.go.set()
        assert (await other)[0] == 200


async def test_form_of_sign_in_is_small() -> None:
    path, app = "/admin/sign-in", {"forms": ["/admin/sign-in"]}
    async with serving(app=app) as served:
        assert await served.ask(post(path, MAX_FORM_BYTES + 1)) == (413, "too_large")
        chunked = b"POST /admin/sign-in HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
        assert await served.ask(chunked, b"1001\r\n" + b"k" * 0x1001) == (413, "too_large")


async def test_body_of_a_sender_that_is_not_known_is_small() -> None:
    async with serving(app={"callers": Names(), "path_callers": {"/admin": Names()}}) as served:
        assert await served.ask(post("/admin/forget", MAX_FORM_BYTES + 1)) == (413, "too_large")
        assert await served.ask(post("/v1/users/u1/turns", MAX_FORM_BYTES + 1)) == (401, "unauthenticated")


async def test_bodies_of_one_sender_and_of_all_have_bounded_room() -> None:
    half = b"{" + b" " * (9 * 1024 * 1024)
    async with serving(app={"callers": Names()}, body_bytes=24 * 1024 * 1024) as served:
        await served.connect(post(TURNS, MAX_BODY_BYTES, "X-API-Key: a") + b"\r\n" + half)
        assert await served.ask(post(TURNS, MAX_BODY_BYTES, "X-API-Key: a"), half) == (429, "too_many_requests")
        assert served.limited("body_bytes_per_sender") == 1
        await served.connect(post(TURNS, MAX_BODY_BYTES, "X-API-Key: b") + b"\r\n" + half)
        assert await served.ask(post(TURNS, MAX_BODY_BYTES, "X-API-Key: c"), half) == (503, "unavailable")
        assert served.limited("body_bytes") == 1
        assert (await served.ask(post(SEARCH, 13, "X-API-Key: c"), b'{"query":"q"}'))[0] == 200
        served.close()
        body = b'{"query":"q"}'.ljust(9 * 1024 * 1024)
        async with asyncio.timeout(ENOUGH_S):
            while (await served.ask(post(SEARCH, len(body), "X-API-Key: a"), body))[0] != 200:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize("path", [SEARCH, TURNS])
async def test_fields_flood_is_refused_before_it_is_parsed(path: str) -> None:
    body = b'{"query":"q",' + b",".join(b'"x%d":0' % number for number in range(MAX_VALUES)) + b"}"
    async with serving() as served:
        assert await served.ask(post(path, len(body)), body) == (413, "too_large")


async def test_unknown_field_is_named_before_others_are_checked(http: httpx.AsyncClient) -> None:
    assert (await http.post(SEARCH, json={"query": 1, "topk": 1})).json()["field"] == "topk"


async def test_unknown_field_of_a_body_is_answered_with_the_known_ones(http: httpx.AsyncClient) -> None:
    told = (await http.post(SEARCH, json={"query": "q", "topk": 1})).json()["detail"]
    assert "there are: query," in told


async def test_unknown_parameter_is_answered_with_the_known_ones(http: httpx.AsyncClient) -> None:
    told = (await http.get("/v1/users/u1/memories", params={"topk": 1})).json()["detail"]
    assert "limit" in told


async def test_hanging_up_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with serving() as served:
        await served.connect(post(TURNS, 1_000_000) + b"\r\n{")
        served.close()
        requests = "modestream_gateway_requests_total"
        gone = {"method": "POST", "route": "none", "status": "gone"}
        await until(lambda: served._meters.registry.get_sample_value(requests, gone))
    assert caplog.messages == []
