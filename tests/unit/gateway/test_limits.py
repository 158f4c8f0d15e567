"""Limits: rates of a key, and what the process bears; none of the rates on a keyless gateway."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from starlette.datastructures import Headers

from gateway.connection_settings import MODEL_TOOLS, USUAL_TOOLS
from gateway.http.limits import Limits
from gateway.mcp.router import McpRouter
from gateway.mem0.routes import mem0_routes
from gateway.service.calls import MAX_BUCKETS, Buckets, Caller
from gateway.service.service import MemoryService
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import http_over

TURN = {"conversation_id": "c1", "role": "user", "content": "hello"}
PROTOCOL = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
SEARCH = "/v1/users/u1/memories/search"


class OneCaller:
    """Every request comes from the same key."""

    async def caller_of(self, headers: Headers, address: str) -> Caller:
        return Caller("k1", "app")


class SlowWire(FakeWire):
    """Answers when it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def partition_of(self, user_id: str) -> int:
        await self.go.wait()
        return 1


async def statuses(http: httpx.AsyncClient, method: str, path: str, count: int) -> list[int]:
    return [(await http.request(method, path, json=TURN)).status_code for _ in range(count)]


async def test_a_key_that_writes_too_often_waits(wire: FakeWire) -> None:
    limits = Limits(writes_per_second=0.5, reads_per_second=1000)
    async with http_over(wire, callers=OneCaller(), limits=limits) as http:
        assert await statuses(http, "POST", "/v1/users/u1/turns", 3) == [201, 429, 429]
        refused = await http.post("/v1/users/u1/turns", json=TURN)
        assert refused.json()["code"] == "too_many_requests"
        assert int(refused.headers["retry-after"]) >= 1
        assert (await http.post(SEARCH, json={"query": "q"})).status_code == 200


async def test_a_list_of_turns_counts_as_many_writes(wire: FakeWire) -> None:
    many = {"turns": [TURN | {"content": f"hello {number}"} for number in range(10)]}
    async with http_over(wire, callers=OneCaller(), limits=Limits(writes_per_second=0.5)) as http:
        assert (await http.post("/v1/users/u1/turns", json=many)).status_code == 201
        refused = await http.post("/v1/users/u1/turns", json=TURN)
    assert refused.status_code == 429


async def test_a_list_of_messages_counts_as_many_writes(wire: FakeWire) -> None:
    many = {"user_id": "u1", "messages": [{"role": "user", "content": f"hello {number}"} for number in range(10)]}
    service = MemoryService(wire)
    routes = mem0_routes(service).routes
    async with http_over(service, callers=OneCaller(), limits=Limits(writes_per_second=0.5), routes=routes) as http:
        assert (await http.post("/mem0/memories", json=many)).status_code == 200
        refused = await http.post("/mem0/memories", json=many)
    assert refused.status_code == 429


async def told(http: httpx.AsyncClient, method: str, **params: Any) -> str:
    """Send a message of the protocol; return its status, and the code of a tool's error."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = await http.post("/mcp/users/u1", json=message, headers=PROTOCOL)
    result = answer.json().get("result", {}) if answer.status_code == 200 else {}
    code = result["content"][0]["text"].partition(":")[0] if result.get("isError") else "ok"
    return f"{answer.status_code} {code}"


@asynccontextmanager
async def protocol_over(wire: FakeWire, limits: Limits) -> AsyncIterator[httpx.AsyncClient]:
    service = MemoryService(wire)
    door = McpRouter(service, (*USUAL_TOOLS, *MODEL_TOOLS))
    async with door.running(), http_over(service, callers=OneCaller(), limits=limits, routes=door.routes) as http:
        yield http


async def test_messages_and_tools_that_read_are_reads(wire: FakeWire) -> None:
    wire.results["list_modes"] = {"modes": []}
    async with protocol_over(wire, Limits(writes_per_second=0.5)) as http:
        for _ in range(3):
            assert await told(http, "tools/list") == "200 ok"
            assert await told(http, "tools/call", name="list_modes", arguments={}) == "200 ok"


async def test_a_tool_that_writes_is_a_write(wire: FakeWire) -> None:
    said = {"name": "add_memory", "arguments": {"text": "The lamp is blue."}}
    async with protocol_over(wire, Limits(writes_per_second=0.5)) as http:
        assert [await told(http, "tools/call", **said) for _ in range(2)] == ["200 ok", "200 too_many_requests"]
        assert (await http.post("/v1/users/u1/turns", json=TURN)).status_code == 429
        assert await told(http, "tools/list") == "200 ok"
    assert len(wire.stored) == 1


async def test_a_key_that_reads_too_often_waits_in_the_protocol_too(wire: FakeWire) -> None:
    async with protocol_over(wire, Limits(reads_per_second=0.5)) as http:
        assert [await told(http, "tools/list") for _ in range(2)] == ["200 ok", "429 ok"]


async def test_a_keyless_gateway_has_no_rates(wire: FakeWire) -> None:
    async with http_over(wire, limits=Limits(writes_per_second=0.5, reads_per_second=0.5)) as http:
        assert set(await statuses(http, "POST", "/v1/users/u1/turns", 20)) == {201}


async def test_more_than_the_process_bears_is_unavailable() -> None:
    wire = SlowWire()
    async with http_over(wire, limits=Limits(in_flight=1)) as http:
        first = asyncio.create_task(http.post(SEARCH, json={"query": "q", "read_after": "1:1"}))
        await asyncio.sleep(0.05)
        refused = await http.post(SEARCH, json={"query": "q"})
        assert refused.status_code == 503
        assert refused.json()["code"] == "unavailable"
        wire.go.set()
        assert (await first).status_code == 200
        assert (await http.post(SEARCH, json={"query": "q"})).status_code == 200


class SlowModel(FakeWire):
    """Has no answers of the language model until it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = asyncio.Event()
        self.go = asyncio.Event()

    async def request(self, topic: str, value: Any, **how: Any) -> Any:
        if value["schema"] == "answer.v1":
            self.asked.set()
            await self.go.wait()
        return await super().request(topic, value, **how)


async def test_tool_that_waits_for_a_model_takes_no_place_of_others() -> None:
    wire = SlowModel()
    async with protocol_over(wire, Limits(in_flight=1)) as http:
        asking = asyncio.create_task(told(http, "tools/call", name="ask_memory", arguments={"query": "tea?"}))
        await asyncio.wait_for(wire.asked.wait(), 5)
        found = await http.post(SEARCH, json={"query": "q"})
        wire.go.set()
        await asking
    assert found.status_code == 200


async def test_a_user_called_answers_takes_no_place_of_models() -> None:
    wire = SlowWire()
    async with http_over(wire, callers=OneCaller(), limits=Limits(in_flight=1)) as http:
        first = asyncio.create_task(http.post(SEARCH, json={"query": "q", "read_after": "1:1"}))
        await asyncio.sleep(0.05)
        refused = await http.delete("/v1/users/answers")
        wire.go.set()
        await first
    assert refused.status_code == 503


def test_a_bucket_fills_again() -> None:
    now = [0.0]
    buckets = Buckets(2.0, 1.0, lambda: now[0])
    assert buckets.take("a") == 0
    assert buckets.take("a") == 0.5
    now[0] = 0.5
    assert buckets.take("a") == 0


def test_a_debt_is_paid_before_there_is_a_token() -> None:
    now = [0.0]
    buckets = Buckets(2.0, 4.0, lambda: now[0])
    buckets.charge("a", 9)
    assert buckets.take("a") == 3
    now[0] = 3.0
    assert buckets.take("a") == 0


def test_buckets_are_bounded() -> None:
    buckets = Buckets(1.0, 1.0)
    for number in range(MAX_BUCKETS + 10):
        buckets.take(str(number))
    assert len(buckets._left) == MAX_BUCKETS
