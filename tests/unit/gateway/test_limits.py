"""Limits: rates of a key, and what the process bears; none of the rates on a keyless gateway."""

import asyncio

import httpx
from starlette.datastructures import Headers

from gateway.http.limits import Limits
from gateway.service.buckets import MAX_BUCKETS, Buckets
from gateway.service.calls import Caller
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import http_over

TURN = {"conversation_id": "c1", "role": "user", "content": "hello"}
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


async def test_a_keyless_gateway_has_no_rates(wire: FakeWire) -> None:
    async with http_over(wire, limits=Limits(writes_per_second=0.5, reads_per_second=0.5)) as http:
        assert set(await statuses(http, "POST", "/v1/users/u1/turns", 20)) == {201}


async def test_more_than_the_process_bears_is_unavailable() -> None:
    wire = SlowWire()
    async with http_over(wire, limits=Limits(in_flight=1)) as http:
        first = asyncio.create_task(http.post(SEARCH, json={"query": "q", "read_after": "1:1"}))
        await asyncio.sleep(0.05)
        refused = await http.post(SEARCH, json={"query": "q"})
        assert (refused.status_code, refused.json()["code"]) == (503, "unavailable")
        wire.go.set()
        assert (await first).status_code == 200
        assert (await http.post(SEARCH, json={"query": "q"})).status_code == 200


def test_a_bucket_fills_again() -> None:
    now = [0.0]
    buckets = Buckets(2.0, 1.0, lambda: now[0])
    assert buckets.take("a") == 0
    assert buckets.take("a") == 0.5
    now[0] = 0.5
    assert buckets.take("a") == 0


def test_buckets_are_bounded() -> None:
    buckets = Buckets(1.0, 1.0)
    for number in range(MAX_BUCKETS + 10):
        buckets.take(str(number))
    assert len(buckets._left) == MAX_BUCKETS
