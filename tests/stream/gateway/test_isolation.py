"""What belongs to others answers as what is not there; keys of one project, and files of keys that change."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.http.limits import Limits
from gateway.keys import callers as key_callers
from gateway.keys.key_file import KeyFile
from tests.worlds.guarded_gateway import POLICY, UNLIMITED, GuardedGateway, gateway_of, pipeline_with_grants, write_keys
from tests.worlds.in_memory_pipeline import InMemoryPipeline

MISSING = "00000000-0000-5000-8000-000000000000"
"""The id of no memory."""


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A file with the keys of `POLICY`."""
    write_keys(tmp_path / "keys.json", *POLICY.principals)
    return tmp_path / "keys.json"


@pytest.fixture
async def gateway(tmp_path: Path, keys: Path) -> AsyncIterator[GuardedGateway]:
    async with pipeline_with_grants(tmp_path).running() as pipeline, gateway_of(pipeline, keys) as running:
        yield running


async def stored(gateway: GuardedGateway, user: str, key: str, text: str, **more: Any) -> httpx.Response:
    turn = {"conversation_id": "c1", "role": "user", "content": text, **more}
    answer = await gateway.ask("POST", f"/v1/users/{user}/turns", key, json=turn)
    assert answer.status_code == 201, answer.text
    return answer


def likeness(answer: httpx.Response, *names: str) -> Any:
    """Return all of an answer but its request id, with these names taken out of it."""
    text = answer.text
    for name in names:
        text = text.replace(name, "…")
    body = json.loads(text)
    body.pop("request_id", None)
    headers = {name: value for name, value in answer.headers.items() if name not in ("x-request-id", "content-length")}
    return answer.status_code, headers, body


async def test_what_is_of_another_user_answers_as_what_is_missing(gateway: GuardedGateway) -> None:
    theirs = (await stored(gateway, "u2", "stranger", "Their secret word is quince.")).json()
    await stored(gateway, "u1", "owner", "We deploy to fly.io.")
    later = {"Prefer": "respond-async"}
    job = (await gateway.ask("POST", "/v1/users/u2/jobs/reconcile", "stranger", headers=later)).json()["job_id"]
    missing_job = job.rpartition("-")[0] + "-99"
    foreign = theirs["memory_id"]
    for method, path, ids, how in (
        ("GET", "/memories/{}", (foreign, MISSING), {}),
        ("PATCH", "/memories/{}", (foreign, MISSING), {"json": {"mode": "general"}}),
        ("PATCH", "/memories/{}", (foreign, MISSING), {"json": {"text": "mine now"}}),
        ("PATCH", "/memories/{}", (foreign, MISSING), {"json": {"interaction_mode": "TASK"}}),
        ("DELETE", "/memories/{}", (foreign, MISSING), {}),
        ("GET", "/memories/{}?project_id=default", (foreign, MISSING), {}),
        ("GET", "/jobs/{}", (job, missing_job), {}),
    ):
        answers = [await gateway.ask(method, "/v1/users/u1" + path.format(each), "owner", **how) for each in ids]
        assert likeness(answers[0], *ids) == likeness(answers[1], *ids), (method, path)
    record = (await gateway.ask("GET", f"/v1/users/u2/memories/{foreign}", "stranger")).json()
    assert record["text"] == "Their secret word is quince."
    for tool in ("get_memory", "delete_memory"):
        texts = []
        for memory_id in (foreign, MISSING):
            answer = await gateway.mcp("tools/call", "owner", name=tool, arguments={"memory_id": memory_id})
            texts.append(answer.text.replace(memory_id, "…"))
        assert texts[0] == texts[1]


async def test_place_and_cursor_of_another_user_show_nothing(gateway: GuardedGateway) -> None:
    for number in range(3):
        theirs = await stored(gateway, "u2", "stranger", f"Their secret word is quince {number}.")
        await stored(gateway, "u1", "owner", f"We deploy to fly.io {number}.")
    page = (await gateway.ask("GET", "/v1/users/u2/memories?limit=1", "stranger")).json()
    answer = await gateway.ask("GET", "/v1/users/u1/memories", "owner", params={"limit": 1, "cursor": page["next"]})
    assert "quince" not in answer.text
    place = theirs.json()["read_after"]
    answer = await gateway.ask(
        "POST", "/v1/users/u1/memories/search", "owner", json={"query": "x", "read_after": place}
    )
    assert answer.status_code == 422
    assert answer.json()["field"] == "read_after"


async def test_users_and_totals_are_those_that_the_key_may_see(gateway: GuardedGateway) -> None:
    await stored(gateway, "u2", "stranger", "Their secret word is quince.")
    for path in ("/v1/users", "/v1/users?prefix=u2", "/v1/deployment", "/v1/me"):
        assert "u2" not in (await gateway.ask("GET", path, "owner")).text


async def test_key_of_one_project_meets_no_other_project(gateway: GuardedGateway) -> None:
    hidden = (await stored(gateway, "u1", "owner", "The secret word is quince.")).json()["memory_id"]
    await stored(gateway, "u1", "of_one_project", "We deploy to fly.io.", project_id="p1")
    for method, path, how in (
        ("POST", "/turns", {"json": {"conversation_id": "c1", "role": "user", "content": "x"}}),
        ("POST", "/memories/search", {"json": {"query": "quince"}}),
        ("GET", "/memories", {}),
        ("GET", "/intention", {}),
        ("PUT", "/intention", {"json": {"goals": ["x"]}}),
        ("DELETE", "?confirm=u1", {}),
        ("DELETE", "/projects/default?confirm=default", {}),
        ("DELETE", "/conversations/c1?confirm=c1", {}),
        ("POST", "/jobs/reconcile", {"json": {"project_id": "p1", "all_projects": True}}),
    ):
        answer = await gateway.ask(method, "/v1/users/u1" + path, "of_one_project", **how)
        assert answer.status_code == 403, (method, path, answer.text)
    for path in ("/memories?project_id=*", "/conversations?project_id=*", "/projects?project_id=*", "/export"):
        answer = await gateway.ask("GET", "/v1/users/u1" + path, "of_one_project")
        assert answer.status_code == 200, path
        assert "quince" not in answer.text, path
        assert '"default"' not in answer.text, path
    answers = [
        await gateway.ask("GET", f"/v1/users/u1/memories/{memory_id}", "of_one_project")
        for memory_id in (hidden, MISSING)
    ]
    assert likeness(answers[0], hidden) == likeness(answers[1], MISSING)
    assert answers[0].status_code == 404
    assert (await gateway.ask("GET", f"/v1/users/u1/memories/{hidden}", "owner")).status_code == 200


async def test_own_user_of_a_key_is_the_only_one(tmp_path: Path) -> None:
    write_keys(tmp_path / "own.json", "owner", user_id="u1")
    async with (
        InMemoryPipeline(tmp_path).running() as pipeline,
        gateway_of(pipeline, tmp_path / "own.json", policy=None) as gateway,
    ):
        assert (await gateway.ask("GET", "/v1/users/u1/memories", "owner")).status_code == 200
        assert (await gateway.ask("GET", "/v1/users/u2/memories", "owner")).status_code == 403
        assert (await gateway.mcp("tools/list", "owner", "/mcp")).status_code == 200
        assert (await gateway.mcp("tools/list", "owner", "/mcp/users/u2")).status_code == 403


async def test_file_of_keys_may_break_change_and_go(
    gateway: GuardedGateway, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_callers, "LOOK_EVERY_S", 0.0)

    async def statuses() -> list[int]:
        asked = [("/v1/users/u1/memories", "owner"), ("/v1/users/u1/memories", "reader"), ("/ready", None)]
        return [(await gateway.ask("GET", path, key)).status_code for path, key in asked]

    good = keys.read_bytes()
    assert await statuses() == [200, 200, 200]
    keys.write_bytes(good[: len(good) // 2])
    assert await statuses() == [200, 200, 503]
    keys.write_bytes(good)
    assert await statuses() == [200, 200, 200]
    KeyFile.read(keys).without("reader").write(keys)
    assert await statuses() == [200, 401, 200]
    expired = json.loads(good)
    expired["keys"][0]["expires"] = "2020-01-01T00:00:00Z"
    keys.write_text(json.dumps(expired))
    assert await statuses() == [401, 200, 200]
    keys.write_bytes(good)
    assert await statuses() == [200, 200, 200]
    keys.unlink()
    assert await statuses() == [401, 401, 503]


async def test_what_is_no_key_is_refused_alike(gateway: GuardedGateway) -> None:
    for name, value in NO_KEYS:
        answer = await gateway.http.get("/v1/me", headers=[(name.encode(), value.encode())])
        assert answer.status_code == 401, (name, value)
        assert answer.json()["code"] == "unauthenticated", (name, value)
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "ms_owner" not in answer.text


NO_KEYS = (
    ("Authorization", "Bearer"), ("Authorization", "Bearer "), ("Authorization", "Basic b3duZXI6"),
    ("Authorization", "ms_owner"), ("Authorization", "Bearer ms_Owner"), ("Authorization", "Bearer ms_owner ms_x"),
    ("Authorization", "Bearer " + "ä" * 10), ("Authorization", "Bearer " + "x" * 9000), ("X-API-Key", ""),
    ("X-API-Key", "owner"), ("X-User-Id", "u1"), ("X-Principal", "owner"), ("principal", "owner"),
    ("Cookie", "ms=ms_owner"),
)  # fmt: skip


async def test_guessing_keys_is_slowed_and_known_keys_are_not(tmp_path: Path, keys: Path) -> None:
    limits = Limits(**{**UNLIMITED.model_dump(), "failed_logins_per_minute": 3})
    async with pipeline_with_grants(tmp_path).running() as pipeline, gateway_of(pipeline, keys, limits) as gateway:
        statuses = [(await gateway.ask("GET", "/v1/me", f"guess{number}")).status_code for number in range(5)]
        assert statuses == [401, 401, 401, 429, 429]
        assert (await gateway.ask("GET", "/v1/me", "owner")).status_code == 200


async def test_rates_are_of_one_key(tmp_path: Path, keys: Path) -> None:
    limits = Limits(**{**UNLIMITED.model_dump(), "reads_per_second": 0.5})
    async with pipeline_with_grants(tmp_path).running() as pipeline, gateway_of(pipeline, keys, limits) as gateway:
        first, second = [await gateway.ask("GET", "/v1/me", "owner") for _ in range(2)]
        assert first.status_code == 200
        assert second.status_code == 429
        assert second.json()["code"] == "too_many_requests"
        assert int(second.headers["retry-after"]) >= 1
        assert (await gateway.ask("GET", "/v1/me", "reader")).status_code == 200
        assert (
            await gateway.ask("POST", "/v1/users/u1/memories/search", "owner", json={"query": "x"})
        ).status_code == 429
