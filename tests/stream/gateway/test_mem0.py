"""mem0's shape, over the whole pipeline in memory."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.http.app import create_app
from gateway.keys.callers import KeyCallers
from gateway.keys.key_file import Key, KeyFile, digest_of
from gateway.mem0.routes import BODIES, mem0_routes
from gateway.service.service import MemoryService
from schemas.state.policies import Policy
from tests.fakes.wire import FakeWire
from tests.worlds.in_memory_client import InMemoryTransport
from tests.worlds.in_memory_pipeline import InMemoryPipeline

MISSING = "00000000-0000-5000-8000-000000000000"

POLICY = Policy.model_validate(
    {
        "principals": {
            "app": [{"user_id": "*"}],
            "viewer": [{"user_id": "u1", "may": ["read"]}],
            "bot": [{"user_id": "u1", "project_id": "bot"}],
        }
    }
)
KEYS = [("own", "app", "u1"), ("other", "app", "u2"), ("any", "app", None), ("viewer", "viewer", "u1")]


@pytest.fixture
async def http(pipeline: InMemoryPipeline, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    made = [
        Key(id=name, sha256=digest_of(name), principal=principal, user_id=user)
        for name, principal, user in (*KEYS, ("bot", "bot", "u1"))
    ]
    KeyFile(keys=tuple(made)).write(tmp_path / "keys.json")
    service = MemoryService(InMemoryTransport(pipeline))
    callers = KeyCallers(tmp_path / "keys.json", POLICY, 100)
    app = create_app(service, _ready, callers=callers, routes=mem0_routes(service).routes, bodies=BODIES, has_api=False)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost/mem0", headers={"X-API-Key": "own"}
    ) as client:
        yield client


async def _ready() -> bool:
    return True


async def _ok(http: httpx.AsyncClient, method: str, path: str, key: str = "own", **more: Any) -> Any:
    told = await http.request(method, path, headers={"X-API-Key": key}, **more)
    assert told.status_code == 200, told.text
    return told.json()


async def _add(http: httpx.AsyncClient, *texts: str, key: str = "own", **more: Any) -> list[str]:
    body = {"messages": [{"role": "user", "content": text} for text in texts], **more}
    results = (await _ok(http, "POST", "/memories", key, json=body))["results"]
    assert [result["event"] for result in results] == ["ADD"] * len(texts)
    assert [result["memory"] for result in results] == list(texts)
    return [result["id"] for result in results]


async def _search(http: httpx.AsyncClient, query: str, **more: Any) -> list[str]:
    return [
        result["memory"] for result in (await _ok(http, "POST", "/search", json={"query": query, **more}))["results"]
    ]


async def test_added_is_found_shown_edited_and_deleted(http: httpx.AsyncClient) -> None:
    [first, second] = await _add(
        http, "The lamp is green.", "The desk is blue.", metadata={"source": "chat"}, infer=True
    )
    [hit, *_] = (await _ok(http, "POST", "/search", json={"query": "which colour has the lamp?"}))["results"]
    assert hit["id"] == first
    assert hit["memory"] == "The lamp is green."
    assert hit["metadata"] == {"source": "chat"}
    assert 0 < hit["score"] <= 1
    await _ok(http, "PUT", f"/memories/{first}", json={"text": "The lamp is red."})
    shown = await _ok(http, "GET", f"/memories/{first}")
    assert shown["memory"] == "The lamp is red."
    assert shown["user_id"] == "u1"
    assert shown["role"] == "user"
    history = await _ok(http, "GET", f"/memories/{first}/history")
    assert [(step["event"], step["new_memory"]) for step in history] == [("ADD", None), ("UPDATE", "The lamp is red.")]
    await _ok(http, "DELETE", f"/memories/{first}")
    assert [memory["id"] for memory in (await _ok(http, "GET", "/memories"))["results"]] == [second]
    for method in ("GET", "DELETE"):
        told = await http.request(method, f"/memories/{first}")
        assert told.status_code == 404
        assert told.json()["code"] == "not_found"


async def test_messages_keep_role_name_time_and_run(http: httpx.AsyncClient) -> None:
    body = {
        "messages": [{"role": "assistant", "content": "Noted.", "name": "Ada"}],
        "timestamp": 1_772_357_400,
        "filters": {"AND": [{"user_id": "u1"}, {"run_id": "r1"}]},
    }
    await _ok(http, "POST", "/v3/memories/add/", json=body)
    [shown] = (await _ok(http, "GET", "/v1/memories/"))["results"]
    assert shown["role"] == "assistant"
    assert shown["actor_id"] == "Ada"
    assert shown["run_id"] == "r1"
    assert shown["agent_id"] is None
    assert shown["created_at"] == "2026-03-01T09:30:00Z"


async def test_agents_and_runs_are_filters(http: httpx.AsyncClient) -> None:
    await _add(http, "The lamp is green.")
    await _add(http, "The lamp is red.", agent_id="bot")
    await _add(http, "The lamp is blue.", run_id="r1")
    await _add(http, "The lamp is grey.", run_id="r1", agent_id="bot")
    assert len(await _search(http, "lamp")) == 4
    assert sorted(await _search(http, "lamp", agent_id="bot")) == ["The lamp is grey.", "The lamp is red."]
    assert sorted(await _search(http, "lamp", run_id="r1")) == ["The lamp is blue.", "The lamp is grey."]
    assert await _search(http, "lamp", filters={"run_id": "r1", "agent_id": "bot"}) == ["The lamp is grey."]
    assert await _search(http, "lamp", run_id="r2") == []
    listed = (await _ok(http, "GET", "/memories", params={"run_id": "r1"}))["results"]
    assert {(memory["memory"], memory["agent_id"]) for memory in listed} == {
        ("The lamp is blue.", None),
        ("The lamp is grey.", "bot"),
    }


@pytest.mark.parametrize(
    "filters", [{"room": "hall"}, {"AND": [{"room": "hall"}, {"user_id": "u1"}]}, {"metadata": {"room": "hall"}}]
)
async def test_searches_are_filtered_by_metadata(http: httpx.AsyncClient, filters: dict[str, Any]) -> None:
    await _add(http, "The lamp is green.", metadata={"room": "hall"})
    await _add(http, "The lamp is red.", metadata={"room": "attic"})
    assert await _search(http, "lamp", filters=filters) == ["The lamp is green."]


async def test_lists_are_filtered_by_metadata(http: httpx.AsyncClient) -> None:
    await _add(http, "The lamp is green.", metadata={"room": "hall"})
    await _add(http, "The lamp is red.", metadata={"room": "attic"})
    page = await _ok(http, "POST", "/v3/memories/", json={"filters": {"room": "attic"}})
    assert [memory["memory"] for memory in page["results"]] == ["The lamp is red."]


async def test_a_key_without_a_user_reads_a_memory_by_its_id(http: httpx.AsyncClient) -> None:
    [memory_id] = await _add(http, "The lamp is green.", key="any", user_id="ana/1")
    shown = await _ok(http, "GET", f"/v1/memories/{memory_id}/", "any")
    assert shown["id"] == memory_id


async def test_a_key_without_a_user_forgets_a_memory_by_its_id(http: httpx.AsyncClient) -> None:
    [memory_id] = await _add(http, "The lamp is green.", key="any", user_id="ana/1")
    await _ok(http, "DELETE", f"/v1/memories/{memory_id}/", "any")
    assert (await _ok(http, "GET", "/memories", "any", params={"user_id": "ana/1"}))["results"] == []


@pytest.mark.parametrize("key", ["own", "viewer"])
async def test_an_id_with_another_user_opens_nothing(http: httpx.AsyncClient, key: str) -> None:
    [memory_id] = await _add(http, "The lamp is green.", key="any", user_id="ana/1")
    told = await http.get(f"/memories/{memory_id}", headers={"X-API-Key": key})
    assert told.status_code == 403


@pytest.mark.parametrize("mark", ["~", "~?", "~4", "~gA"])
async def test_an_id_with_a_broken_user_is_unknown(http: httpx.AsyncClient, mark: str) -> None:
    told = await http.get(f"/memories/{MISSING}{mark}", headers={"X-API-Key": "any"})
    assert told.status_code in (404, 422)


@pytest.mark.parametrize(
    ("named", "left"),
    [
        ({}, []),
        ({"agent_id": "bot"}, ["The lamp is blue.", "The lamp is green."]),
        ({"run_id": "r1"}, ["The lamp is green.", "The lamp is red."]),
        ({"run_id": "r1", "agent_id": "bot"}, ["The lamp is blue.", "The lamp is green.", "The lamp is red."]),
    ],
)
async def test_delete_all_forgets_what_is_named_alone(
    http: httpx.AsyncClient, named: dict[str, str], left: list[str]
) -> None:
    await _add(http, "The lamp is green.")
    await _add(http, "The lamp is red.", agent_id="bot")
    await _add(http, "The lamp is blue.", run_id="r1")
    await _add(http, "The lamp is grey.", run_id="r1", agent_id="bot")
    await _add(http, "The lamp is green.", key="other")
    await _ok(http, "DELETE", "/memories", params={"user_id": "u1", **named})
    listed = (await _ok(http, "GET", "/memories"))["results"]
    assert sorted(memory["memory"] for memory in listed) == left
    assert len((await _ok(http, "GET", "/memories", "other"))["results"]) == 1


async def test_pages_by_number_show_each_once(http: httpx.AsyncClient) -> None:
    made = await _add(http, *(f"Note {number}." for number in range(5)))
    seen = []
    path = "http://localhost/mem0/v3/memories/?page=1&page_size=2"
    while path:
        page = await _ok(http, "POST", path, json={"filters": {"user_id": "u1"}})
        assert page["count"] == 5
        seen += [result["id"] for result in page["results"]]
        path = page["next"]
    assert sorted(seen) == sorted(made)
    beyond = await _ok(http, "POST", "/v3/memories/", params={"page": 9, "page_size": 2}, json={})
    assert beyond["results"] == []


@pytest.mark.parametrize(
    ("method", "path", "sent", "field"),
    [
        ("POST", "/search", {"query": "lamp", "filters": {"category": ["x"]}}, "filters.category"),
        ("POST", "/memories", {"messages": [{"role": "user", "content": "a"}], "filters": {"a": "b"}}, "filters.a"),
        ("POST", "/search", {"query": "lamp", "filters": {"OR": [{"user_id": "u1"}]}}, "filters.OR"),
        ("POST", "/search", {"query": "lamp", "filters": {"AND": [{"score": {"gt": 1}}]}}, "filters.AND.0.score"),
        ("POST", "/search", {"query": "lamp", "filters": {"agent_id": "*"}}, "filters.agent_id"),
        ("POST", "/search", {"query": "lamp", "filters": {"agent_id": {"in": ["a"]}}}, "filters.agent_id"),
        ("POST", "/search", {"query": "lamp", "user_id": "u1", "filters": {"user_id": "u2"}}, "filters.user_id"),
        ("POST", "/search", {"query": "lamp", "expiration": 1}, "expiration"),
        ("POST", "/memories", {"messages": []}, "messages"),
        ("POST", "/memories", {"messages": [{"role": "user", "content": "a"}, {"role": "user"}]}, "messages.1.content"),
        ("POST", "/memories", {"messages": [{"role": "critic", "content": "a"}]}, "messages.0.role"),
        ("POST", "/memories", {"messages": [{"role": "user", "content": ""}]}, "messages.0.content"),
        ("POST", "/memories", {"messages": [{"role": "user", "content": "a"}], "app_id": "x"}, "app_id"),
        ("GET", "/memories?category=x", None, "category"),
        ("DELETE", "/memories", None, "user_id"),
        ("DELETE", "/memories?user_id=u1&app_id=x", None, "app_id"),
        ("PUT", f"/memories/{MISSING}", {"metadata": {}}, "metadata"),
        ("PUT", f"/memories/{MISSING}", {}, "text"),
    ],
)
async def test_what_is_not_understood_is_refused(
    http: httpx.AsyncClient, method: str, path: str, sent: Any, field: str
) -> None:
    told = await http.request(method, path, json=sent)
    assert told.status_code == 422, told.text
    assert told.json()["field"] == field, told.text
    assert (await _ok(http, "GET", "/memories"))["results"] == []


async def test_ids_may_stand_in_the_query_of_every_request(http: httpx.AsyncClient) -> None:
    """mem0's client library sends default parameters of its connection with every request."""
    sent = {"messages": [{"role": "user", "content": "The lamp is green."}]}
    await _ok(http, "POST", "/memories", "any", json=sent, params={"user_id": "u2"})
    for path, body in (("/search", {"query": "lamp"}), ("/v3/memories/", {"filters": {"user_id": "u2"}})):
        found = await _ok(http, "POST", path, "any", json=body, params={"user_id": "u2"})
        assert [result["user_id"] for result in found["results"]] == ["u2"]
    told = await http.post("/search", json={"query": "lamp", "user_id": "u1"}, params={"user_id": "u2"})
    assert told.status_code == 422
    assert told.json()["field"] == "user_id"


async def test_every_path_keeps_users_apart(http: httpx.AsyncClient) -> None:
    [mine] = await _add(http, "The lamp is green.")
    for method, path, sent in _walk(mine):
        where = f"{path}{'&' if '?' in path else '?'}user_id=u1" if sent is None or method == "PUT" else path
        body = sent if sent is None or method == "PUT" else {**sent, "user_id": "u1"}
        assert (await http.request(method, where, json=body, headers={"X-API-Key": ""})).status_code == 401
        told = await http.request(method, where, json=body, headers={"X-API-Key": "other"})
        assert told.status_code == 403, (method, where)
        assert told.json()["code"] == "not_allowed", (method, where)
        if path.startswith("/memories/"):
            told = await http.request(method, path, json=sent, headers={"X-API-Key": "other"})
            assert told.status_code == 404, (method, path)
            told = await http.request(method, path, json=sent, headers={"X-API-Key": "any"})
            assert told.status_code == 422
            assert told.json()["field"] == "user_id"
        if method in ("PUT", "DELETE") or (path == "/memories" and method == "POST"):
            told = await http.request(method, where, json=body, headers={"X-API-Key": "viewer"})
            assert told.status_code == 403, (method, where)
    assert (await _ok(http, "GET", f"/memories/{mine}", "any", params={"user_id": "u1"}))["user_id"] == "u1"


def _walk(memory_id: str) -> list[tuple[str, str, dict[str, Any] | None]]:
    return [
        ("POST", "/memories", {"messages": [{"role": "user", "content": "x"}]}),
        ("GET", "/memories", None),
        ("POST", "/v3/memories/", {}),
        ("POST", "/search", {"query": "lamp"}),
        ("GET", f"/memories/{memory_id}", None),
        ("GET", f"/memories/{memory_id}/history", None),
        ("PUT", f"/memories/{memory_id}", {"text": "x"}),
        ("DELETE", f"/memories/{memory_id}", None),
        ("DELETE", "/memories", None),
    ]


async def test_key_of_one_project_is_one_agent(http: httpx.AsyncClient) -> None:
    await _add(http, "The lamp is green.")
    await _add(http, "The lamp is red.", key="bot", agent_id="bot")
    body = {"query": "lamp"}
    assert [result["memory"] for result in (await _ok(http, "POST", "/search", "bot", json=body))["results"]] == [
        "The lamp is red."
    ]
    refused = await http.post(
        "/memories", json={"messages": [{"role": "user", "content": "x"}]}, headers={"X-API-Key": "bot"}
    )
    assert refused.status_code == 403
    await _ok(http, "DELETE", "/memories", "bot", params={"user_id": "u1", "agent_id": "bot"})
    assert [result["memory"] for result in (await _ok(http, "GET", "/memories"))["results"]] == ["The lamp is green."]


async def test_idempotency_key_stores_once(http: httpx.AsyncClient) -> None:
    body = {"messages": [{"role": "user", "content": "The lamp is green."}]}
    headers = {"Idempotency-Key": "k1"}
    first = (await http.post("/memories", json=body, headers=headers)).json()["results"][0]
    again = (await http.post("/memories", json=body, headers=headers)).json()["results"][0]
    assert again == {**first, "event": "NONE"}


async def test_keys_may_come_as_the_client_library_sends_them(http: httpx.AsyncClient) -> None:
    told = await http.get("/v1/ping/", headers={"X-API-Key": "", "Authorization": "Token own"})
    assert told.status_code == 200
    assert told.json()["status"] == "ok"
    assert (await http.get("/v1/ping/", headers={"X-API-Key": ""})).status_code == 401


@pytest.mark.parametrize("path", ["/reset", "/configure"])
async def test_some_routes_do_not_exist(http: httpx.AsyncClient, path: str) -> None:
    assert (await http.post(path, json={})).status_code == 404


def test_document_has_the_routes_where_they_are_served() -> None:
    service = MemoryService(FakeWire())
    with_mem0 = create_app(service, _ready, routes=mem0_routes(service).routes, bodies=BODIES).openapi()
    without = create_app(service, _ready).openapi()
    shown = {path for path in with_mem0["paths"] if path.startswith("/mem0")}
    assert set(with_mem0["paths"]) - shown == set(without["paths"])
    assert len(shown) == 6
    assert {"Mem0Add", "Mem0Message", "Mem0Search"} <= set(with_mem0["components"]["schemas"])
    assert "Mem0" not in str(without)
