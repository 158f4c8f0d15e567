"""Keys: the caller is decided by the file of keys and the policy, before anything is written."""

import argparse
import re
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import httpx
import pytest

from gateway.http.app import create_app
from gateway.http.identity import OPEN_PATHS
from gateway.http.limits import Limits
from gateway.keys import callers as key_callers
from gateway.keys.callers import KeyCallers
from gateway.keys.key_file import Key, KeyFile, add_key_commands, digest_of, make_first_key, new_key, run_key_command
from gateway.service.service import MemoryService
from schemas.state.policies import Policy
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import always_ready, http_over

POLICY = Policy.model_validate_json(
    '{"principals": {"app": [{"user_id": "*"}], "reader": [{"user_id": "u1", "may": ["read"]}],'
    ' "one": [{"user_id": "u1", "project_id": "p1"}]}}'
)
WRITES = {"POST", "PUT", "PATCH", "DELETE"}
READS = ("/memories/search", "/contexts")


class Keyed:
    """A file of keys, and the keys themselves by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.keys: dict[str, str] = {}

    def add(self, name: str, principal: str, user_id: str | None = None, expires: datetime | None = None) -> None:
        secret = self.keys[name] = new_key()
        key = Key(id=name, sha256=digest_of(secret), principal=principal, user_id=user_id, expires=expires)
        KeyFile.read(self.path).with_key(key).write(self.path)

    def headers(self, name: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.keys[name]}"}


@pytest.fixture
def keyed(tmp_path: Path) -> Keyed:
    return keys_in(tmp_path / "keys.json")


def keys_in(path: Path) -> Keyed:
    made = Keyed(path)
    made.add("app", "app")
    made.add("reader", "reader")
    made.add("one", "one")
    made.add("own", "app", user_id="u1")
    made.add("old", "app", expires=datetime.now(UTC) - timedelta(seconds=1))
    made.add("stranger", "nothing-granted")
    return made


@pytest.fixture
def callers(keyed: Keyed, monkeypatch: pytest.MonkeyPatch) -> KeyCallers:
    monkeypatch.setattr(key_callers, "LOOK_EVERY_S", 0)
    return KeyCallers(keyed.path, POLICY, failed_logins_per_minute=1000)


@pytest.fixture
async def http(wire: FakeWire, callers: KeyCallers) -> AsyncIterator[httpx.AsyncClient]:
    async with http_over(wire, callers=callers) as client:
        yield client


@dataclass(frozen=True)
class Walk:
    """One door for a walk over all routes, whose wire is emptied for each test."""

    http: httpx.AsyncClient
    wire: FakeWire
    keyed: Keyed


@pytest.fixture
def walk(door: Walk) -> Walk:
    door.wire.clear()
    return door


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    wire, keyed = FakeWire(), keys_in(tmp_path_factory.mktemp("walk") / "keys.json")
    app = create_app(
        MemoryService(wire),
        always_ready,
        callers=KeyCallers(keyed.path, POLICY, failed_logins_per_minute=1000),
        limits=Limits(reads_per_second=1e6, writes_per_second=1e6),
    )
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return Walk(httpx.AsyncClient(transport=transport, base_url="http://localhost"), wire, keyed)


@cache
def routes() -> list[tuple[str, str]]:
    """Every operation of the document, as method and path, that is not open to all."""
    paths = create_app(MemoryService(FakeWire()), always_ready).openapi()["paths"]
    return [(method.upper(), path) for path, item in paths.items() if path not in OPEN_PATHS for method in item]


def path_of(path: str, user: str) -> str:
    return re.sub(r"{[^}]+}", "x", path.replace("{user_id}", user))


USER_ROUTES = [(method, path) for method, path in routes() if "{user_id}" in path]


def test_the_walk_has_all_routes() -> None:
    assert len(USER_ROUTES) > 30


@pytest.mark.parametrize(("method", "path"), routes())
async def test_every_route_needs_a_key(walk: Walk, method: str, path: str) -> None:
    answer = await walk.http.request(method, path_of(path, "u1"))
    assert answer.status_code == 401
    assert answer.json()["code"] == "unauthenticated"
    assert answer.headers["www-authenticate"] == "Bearer"
    assert walk.wire.sent == []


@pytest.mark.parametrize("name", ["own", "reader", "one", "stranger"])
@pytest.mark.parametrize(("method", "path"), USER_ROUTES)
async def test_no_route_serves_another_user(walk: Walk, method: str, path: str, name: str) -> None:
    answer = await walk.http.request(method, path_of(path, "u2"), headers=walk.keyed.headers(name))
    assert answer.status_code == 403
    assert answer.json()["code"] == "not_allowed"
    assert walk.wire.sent == []


@pytest.mark.parametrize(("method", "path"), [route for route in USER_ROUTES if route[0] in WRITES])
async def test_a_reading_key_writes_nothing(walk: Walk, method: str, path: str) -> None:
    if path.endswith(READS):
        return
    wire = walk.wire
    # Asking is reading, and storing question and answer is not.
    needed = {"query": "where?"} if path.endswith("/answers") else {}
    body = {"mode": "notes"} if method == "PATCH" else needed
    wire.results["get_memory"] = {"memory_id": "x", "scope": {"user_id": "u1"}}
    wire.results["list.v1"] = {"items": [{"scope": {"user_id": "u1", "project_id": "p1"}}]}
    answer = await walk.http.request(method, path_of(path, "u1"), headers=walk.keyed.headers("reader"), json=body)
    assert answer.status_code == 403
    assert {record.get("command") for record in wire.records} <= {"get_memory", None}
    assert {topic for topic, _, _ in wire.sent} <= {"retrieve", "commands"}


async def test_the_principal_goes_with_every_request(http: httpx.AsyncClient, wire: FakeWire, keyed: Keyed) -> None:
    answer = await http.post("/v1/users/u1/memories/search", json={"query": "q"}, headers=keyed.headers("reader"))
    assert answer.status_code == 200, answer.text
    [(_, _, principal)] = wire.sent
    assert principal == "reader"


async def test_a_grant_of_one_project_is_none_of_another(http: httpx.AsyncClient, keyed: Keyed) -> None:
    turn = {"conversation_id": "c", "role": "user", "content": "x"}
    statuses = [
        (
            await http.post("/v1/users/u1/turns", json=turn | {"project_id": project}, headers=keyed.headers("one"))
        ).status_code
        for project in ("p1", "p2")
    ]
    assert statuses == [201, 403]


async def test_a_key_may_come_in_its_own_header(http: httpx.AsyncClient, keyed: Keyed) -> None:
    me = (await http.get("/v1/me", headers={"X-API-Key": keyed.keys["own"]})).json()
    assert me["name"] == "own"
    assert me["principal"] == "app"
    assert me["user_id"] == "u1"


@pytest.mark.parametrize("headers", [{"Authorization": "Bearer ms_x"}, {"Authorization": "Basic x"}, {"X-API-Key": ""}])
async def test_an_unknown_key_is_none(http: httpx.AsyncClient, headers: dict[str, str]) -> None:
    assert (await http.get("/v1/me", headers=headers)).status_code == 401


async def test_an_expired_key_is_none(http: httpx.AsyncClient, keyed: Keyed) -> None:
    assert (await http.get("/v1/me", headers=keyed.headers("old"))).status_code == 401


async def test_a_revoked_key_ends_and_a_new_one_begins_without_a_restart(http: httpx.AsyncClient, keyed: Keyed) -> None:
    KeyFile.read(keyed.path).without("app").write(keyed.path)
    keyed.add("new", "app")
    assert (await http.get("/v1/me", headers=keyed.headers("app"))).status_code == 401
    assert (await http.get("/v1/me", headers=keyed.headers("new"))).status_code == 200


async def test_a_broken_file_keeps_the_keys_before_it(
    http: httpx.AsyncClient, keyed: Keyed, callers: KeyCallers
) -> None:
    keyed.path.write_text("{")
    assert (await http.get("/v1/me", headers=keyed.headers("app"))).status_code == 200
    assert not callers.is_sound


async def test_many_unknown_keys_of_an_address_are_slowed_down(wire: FakeWire, keyed: Keyed) -> None:
    async with http_over(wire, callers=KeyCallers(keyed.path, POLICY, failed_logins_per_minute=3)) as http:
        statuses = [(await http.get("/v1/me", headers={"X-API-Key": "ms_x"})).status_code for _ in range(5)]
        assert statuses == [401, 401, 401, 429, 429]
        assert (await http.get("/v1/me", headers=keyed.headers("app"))).status_code == 200


async def test_open_paths_need_no_key(http: httpx.AsyncClient) -> None:
    assert [(await http.get(path)).status_code for path in sorted(OPEN_PATHS)] == [200, 200, 200]


def test_keys_are_added_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "keys.json"
    parser = argparse.ArgumentParser()
    add_key_commands(parser)

    def run(*words: str) -> int:
        return run_key_command(parser.parse_args(words), path)

    assert run("add", "--principal", "app", "--user", "u1", "--label", "phone") == 0
    secret = capsys.readouterr().out.strip()
    [key] = KeyFile.read(path).keys
    assert secret.startswith("ms_")
    assert key.sha256 == digest_of(secret)
    assert secret not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    assert run("list") == 0
    assert capsys.readouterr().out.split() == [key.id, "app", "u1", "phone"]
    assert run("revoke", key.id) == 0
    assert run("revoke", key.id) == 1
    assert KeyFile.read(path).keys == ()
    assert run("add", "--principal", "app", "--expires", "soon") == 1


def test_first_key_is_an_administrators(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    secret = make_first_key(path)
    assert secret is not None
    assert [(key.sha256, key.user_id) for key in KeyFile.read(path).keys] == [(digest_of(secret), None)]


def test_first_key_is_made_once(tmp_path: Path) -> None:
    make_first_key(tmp_path / "keys.json")
    assert make_first_key(tmp_path / "keys.json") is None


def test_keys_that_are_added_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    threads = [
        threading.Thread(
            target=KeyFile.change,
            args=(path, lambda keys, n=n: keys.with_key(Key(id=f"k{n}", sha256=digest_of(f"{n}"), principal="app"))),
        )
        for n in range(50)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(KeyFile.read(path).keys) == 50


def listed(tmp_path: Path, capsys: pytest.CaptureFixture[str], *, has_policy: bool) -> str:
    keyed = Keyed(tmp_path / "keys.json")
    keyed.add("everyones", "app")
    keyed.add("anas", "app", user_id="ana")
    parser = argparse.ArgumentParser()
    add_key_commands(parser)
    assert run_key_command(parser.parse_args(["list"]), keyed.path, has_policy=has_policy) == 0
    return capsys.readouterr().err


def test_list_names_administrators_where_there_is_no_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = listed(tmp_path, capsys, has_policy=False)
    assert "administrators, as MODESTREAM_AUTHORIZATION is not set" in told
    assert told.rstrip().endswith(": everyones")


def test_list_names_no_administrators_where_there_is_a_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert listed(tmp_path, capsys, has_policy=True) == ""
