"""Hosts and origins: a rebound name and a page of another site get nothing."""

import httpx
import pytest

from gateway.http.app import AllowedHosts
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import http_over

TURN = {"conversation_id": "c1", "role": "user", "content": "hello"}

SHARES_APP = True


@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "127.0.0.1:20501", "[::1]:8080", "LOCALHOST"])
async def test_loopback_is_served(http: httpx.AsyncClient, host: str) -> None:
    assert (await http.get("/v1/me", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "localhost.", "[::2]"]
)
async def test_another_host_is_misdirected(http: httpx.AsyncClient, host: str) -> None:
    for path in ("/v1/me", "/live", "/openapi.json"):
        assert (await http.get(path, headers={"Host": host})).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Origin": "http://localhost.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_a_page_of_another_origin_writes_nothing(
    http: httpx.AsyncClient, wire: FakeWire, headers: dict[str, str]
) -> None:
    answer = await http.post("/v1/users/u1/turns", json=TURN, headers=headers)
    assert answer.status_code == 403
    assert answer.json()["code"] == "not_allowed"
    assert wire.sent == []


async def test_a_second_origin_is_looked_at_too(http: httpx.AsyncClient) -> None:
    headers = [("Origin", "http://localhost"), ("Origin", "https://evil.example")]
    assert (await http.get("/v1/me", headers=headers)).status_code == 403


async def test_an_own_page_is_served(http: httpx.AsyncClient) -> None:
    headers = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}
    assert (await http.post("/v1/users/u1/turns", json=TURN, headers=headers)).status_code == 201


async def test_a_public_name_is_served_with_its_pages(wire: FakeWire) -> None:
    async with http_over(wire, hosts=AllowedHosts(["memory.example"])) as http:
        headers = {"Host": "memory.example", "Origin": "https://memory.example"}
        assert (await http.get("/v1/me", headers=headers)).status_code == 200
        assert (await http.get("/v1/me", headers={"Host": "other.example"})).status_code == 421
