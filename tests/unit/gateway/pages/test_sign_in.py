"""Signing in: a key opens a session, a revoked one ends it, and the cookie opens nothing but pages."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from gateway.http.identity import Callers, OpenCallers
from gateway.keys import callers as key_callers
from gateway.keys.callers import KeyCallers
from gateway.keys.key_file import Key, KeyFile, digest_of, new_key
from gateway.pages.app import page_routes
from gateway.pages.requests import PAGES
from gateway.pages.sign_in import Sessions, SignIn
from gateway.service.calls import Caller
from gateway.service.service import MemoryService
from schemas.scopes import Scope
from schemas.state.policies import Policy
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import http_over
from tests.worlds.pages import OneCaller

POLICY = Policy.model_validate_json('{"principals": {"app": [{"user_id": "u1", "may": ["read"]}]}}')

SECRET = b"a secret of thirty-two characters"

BEHIND_TLS = {"X-Forwarded-Proto": "https"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.json"


@pytest.fixture
def key(path: Path) -> str:
    secret = new_key()
    KeyFile.read(path).with_key(Key(id="k1", sha256=digest_of(secret), principal="app")).write(path)
    return secret


@pytest.fixture
async def http(
    wire: FakeWire, path: Path, key: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx.AsyncClient]:
    monkeypatch.setattr(key_callers, "LOOK_EVERY_S", 0)
    callers = KeyCallers(path, POLICY, failed_logins_per_minute=3)
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    sign_in, service = SignIn(callers, callers, Sessions(SECRET)), MemoryService(wire)
    routes = page_routes(service, Scope, sign_in)
    async with http_over(
        service, callers=callers, routes=routes, path_callers={PAGES: sign_in}, has_api=False
    ) as client:
        yield client


async def sign_in_with(http: httpx.AsyncClient, key: str, wanted: str = "/admin/memories?user=u1") -> httpx.Response:
    return await http.post("/admin/sign-in", data={"key": key, "next": wanted})


async def test_a_page_leads_to_the_sign_in_and_back(http: httpx.AsyncClient, key: str) -> None:
    answer = await http.get("/admin/memories?user=u1")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/admin/sign-in?next=%2Fadmin%2Fmemories%3Fuser%3Du1"
    opened = await sign_in_with(http, key)
    assert opened.status_code == 303
    assert opened.headers["location"] == "/admin/memories?user=u1"
    cookie = opened.headers["set-cookie"]
    assert key not in cookie
    assert {"HttpOnly", "SameSite=strict", "Max-Age=43200"} <= {part.strip() for part in cookie.split(";")}
    assert (await http.get("/admin/memories?user=u1")).status_code == 200


async def test_a_page_of_another_user_is_refused(http: httpx.AsyncClient, key: str, wire: FakeWire) -> None:
    await sign_in_with(http, key)
    answer = await http.get("/admin/memories?user=u2")
    assert answer.status_code == 403
    assert "Not allowed" in answer.text
    assert wire.sent == []


async def test_a_reading_key_changes_nothing(http: httpx.AsyncClient, key: str, wire: FakeWire) -> None:
    await sign_in_with(http, key)
    answer = await http.post("/admin/modes?user=u1", data={"name": "journal", "embedder": "general"})
    assert answer.status_code == 403
    assert wire.sent == []


async def test_the_cookie_opens_no_other_door(http: httpx.AsyncClient, key: str) -> None:
    await sign_in_with(http, key)
    assert (await http.get("/v1/me")).status_code == 401


async def test_a_revoked_key_ends_its_sessions(http: httpx.AsyncClient, key: str, path: Path) -> None:
    await sign_in_with(http, key)
    KeyFile.read(path).without("k1").write(path)
    assert (await http.get("/admin/memories?user=u1")).status_code == 303


async def test_a_session_can_be_closed(http: httpx.AsyncClient, key: str) -> None:
    await sign_in_with(http, key)
    await http.post("/admin/sign-out")
    assert (await http.get("/admin/memories?user=u1")).status_code == 303


async def test_the_cookie_of_a_closed_session_opens_nothing(http: httpx.AsyncClient, key: str) -> None:
    await sign_in_with(http, key)
    copied = http.cookies["ms"]
    await http.post("/admin/sign-out")
    http.cookies.set("ms", copied)
    assert (await http.get("/admin/memories?user=u1")).status_code == 303


async def test_another_session_of_the_key_stays_open(http: httpx.AsyncClient, key: str) -> None:
    await sign_in_with(http, key)
    copied = http.cookies["ms"]
    await sign_in_with(http, key)
    await http.post("/admin/sign-out")
    http.cookies.set("ms", copied)
    assert (await http.get("/admin/memories?user=u1")).status_code == 200


async def test_behind_tls_the_cookie_is_bound_to_the_host(http: httpx.AsyncClient, key: str) -> None:
    opened = await http.post("/admin/sign-in", data={"key": key, "next": ""}, headers=BEHIND_TLS)
    assert opened.headers["set-cookie"].startswith("__Host-ms=")


async def test_behind_tls_a_cookie_that_a_sibling_domain_could_set_is_none(http: httpx.AsyncClient, key: str) -> None:
    await sign_in_with(http, key)
    answer = await http.get("/admin/memories?user=u1", headers=BEHIND_TLS)
    assert answer.status_code == 303


async def test_without_tls_the_cookie_of_tls_is_none(http: httpx.AsyncClient, key: str) -> None:
    await sign_in_with(http, key)
    answer = await http.get("/admin/memories?user=u1", headers={"Cookie": f"__Host-ms={http.cookies['ms']}; ms="})
    assert answer.status_code == 303


@pytest.mark.parametrize("wanted", ["https://evil.example/", "//evil.example", "/admin\\evil", "/administrator", ""])
async def test_only_own_pages_are_led_to(http: httpx.AsyncClient, key: str, wanted: str) -> None:
    assert (await sign_in_with(http, key, wanted)).headers["location"] == "/admin"


async def test_wrong_keys_are_refused_and_slowed_down(http: httpx.AsyncClient) -> None:
    assert [(await sign_in_with(http, "ms_x")).status_code for _ in range(5)] == [401, 401, 401, 429, 429]


@pytest.mark.parametrize("token", ["x", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJrMSIsImV4cCI6OTk5OTk5OTk5OX0."])
async def test_a_forged_cookie_is_none(http: httpx.AsyncClient, token: str) -> None:
    http.cookies.set("ms", token)
    assert (await http.get("/admin/memories?user=u1")).status_code == 303


async def test_every_page_has_the_headers_that_protect_it(http: httpx.AsyncClient, key: str) -> None:
    await sign_in_with(http, key)
    for page in ("/admin", "/admin/memories?user=u1", "/admin/nothing", "/admin/sign-in"):
        headers = (await http.get(page)).headers
        assert headers["content-security-policy"].startswith("default-src 'self'; frame-ancestors 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("callers", "said"), [(OpenCallers(), "needs no sign-in"), (OneCaller(Caller()), "an identity provider")]
)
async def test_without_keys_the_page_says_how_to_come_in(wire: FakeWire, callers: Callers, said: str) -> None:
    sign_in, service = SignIn(callers, None, Sessions(SECRET)), MemoryService(wire)
    async with http_over(
        service, routes=page_routes(service, Scope, sign_in), path_callers={PAGES: sign_in}, has_api=False
    ) as client:
        assert said in (await client.get("/admin/sign-in")).text
