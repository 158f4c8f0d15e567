"""Every route and every tool with no key, another user's key, a key that may only read, and one that may only write.

The worker is asked with the caller's principal and has the same grants; these tests show that a refused request does
not even reach it.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from tests.stream.gateway.walks import NAMES, PROTOCOL_PATHS, ROUTES, TOOLS, Needs, Visit
from tests.worlds.guarded_gateway import POLICY, GuardedGateway, gateway_of, pipeline_with_grants, write_keys

CALLERS = (None, "stranger", "reader", "writer", "operator", "owner")
"""In this order: what the owner forgets, the others have asked for before."""


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[GuardedGateway]:
    """A gateway with the keys of `POLICY`."""
    write_keys(tmp_path / "keys.json", *POLICY.principals)
    async with (
        pipeline_with_grants(tmp_path).running() as pipeline,
        gateway_of(pipeline, tmp_path / "keys.json") as running,
    ):
        yield running


def walked(app: FastAPI) -> set[str]:
    """Return all routes of an app as `METHOD path`, without those of the protocol."""
    routes = [route for route in iter_route_contexts(app.routes) if route.path not in PROTOCOL_PATHS]
    return {f"{method} {route.path}" for route in routes for method in route.methods or {"?"}}


def expected(needs: Needs, caller: str | None) -> int:
    """Return the status of a visit; 200 for any success."""
    if needs == "open":
        return 200
    if caller is None:
        return 401
    return 200 if may(needs, caller) else 403


def may(needs: Needs, caller: str) -> bool:
    of_their_own = {("reader", "read"), ("writer", "write"), ("operator", "operate")}
    return needs == "any" or (caller == "owner" and needs != "operate") or (caller, needs) in of_their_own


async def visited(gateway: GuardedGateway, route: str, visit: Visit, caller: str | None, ids: dict[str, str]) -> int:
    method, path = route.split(" ")
    path = path.format(user_id="u1", name=NAMES.get(route, "hosting"), **ids)
    if path.endswith("/events"):
        return await gateway.begin(path, caller)
    answer = begun = await gateway.ask(method, path, caller, **visit.how)
    while path.endswith("/imports") and answer.status_code == 202:
        # Until it has ended: what it sends is not what the next visit sends.
        answer = await gateway.ask("GET", begun.headers["location"], "owner")
    return begun.status_code


async def made_by_owner(gateway: GuardedGateway) -> dict[str, str]:
    """Store what the visits name; return the ids for their paths."""
    turn = {"conversation_id": "c1", "role": "user", "content": "The login fails with a 500."}
    await gateway.ask("POST", "/v1/users/u1/turns", "owner", json=turn)
    asked = {"query": "Why does the login fail?", "min_score": 0}
    context = (await gateway.ask("POST", "/v1/users/u1/contexts", "owner", json=asked)).json()
    gone = await gateway.ask("POST", "/v1/users/u1/forget", "owner", json={"conversation_id": "none"})
    later = await gateway.ask("POST", "/v1/users/u1/jobs/reconcile", "owner", headers={"Prefer": "respond-async"})
    await gateway.ask("PUT", "/v1/users/u1/categories/hosting", "owner", json={"description": "servers"})
    job_id = later.json()["job_id"]
    form: dict[str, Any] = {"files": {"file": ("b.txt", b"The boat.")}, "data": {"conversation_id": "c2"}}
    uploaded = (await gateway.ask("POST", "/v1/users/u1/files", "owner", **form)).json()
    while (await gateway.ask("GET", f"/v1/users/u1/jobs/{job_id}", "owner")).status_code == 202:
        pass
    while (await gateway.ask("GET", f"/v1/users/u1/memories/{uploaded['memory_id']}/file", "owner")).is_error:
        await asyncio.sleep(0.05)
    return {
        "memory_id": uploaded["memory_id"],
        "context_id": context["context_id"],
        "receipt_id": gone.json()["receipt"]["receipt_id"],
        "conversation_id": "c1",
        "project_id": "default",
        "job_id": job_id,
        "sha256": uploaded["resource"]["sha256"],
    }


async def test_every_route_asks_for_a_key_with_the_permission_that_it_needs(gateway: GuardedGateway) -> None:
    assert walked(gateway.app) == set(ROUTES)
    ids, wrong = await made_by_owner(gateway), []
    for caller in CALLERS:
        for route, visit in ROUTES.items():
            gateway.wire.sent.clear()
            status = await visited(gateway, route, visit, caller, ids)
            if (200 if status // 100 == 2 else status) != expected(visit.needs, caller):
                wrong.append((route, caller, status))
            if status in (401, 403) and not (caller == "reader" and route.startswith("PATCH")):
                assert gateway.wire.sent == [], (route, caller)
    assert not wrong, "\n".join(map(str, wrong))


async def test_every_tool_asks_for_a_key_with_the_permission_that_it_needs(gateway: GuardedGateway) -> None:
    listed = (await gateway.mcp("tools/list", "reader")).json()["result"]["tools"]
    assert {tool["name"] for tool in listed} == set(TOOLS)
    ids, wrong = await made_by_owner(gateway), []
    for caller in ("reader", "writer", "owner"):
        for name, (needs, arguments) in TOOLS.items():
            given = {
                name: value.format(**ids) if isinstance(value, str) else value for name, value in arguments.items()
            }
            answer = (await gateway.mcp("tools/call", caller, name=name, arguments=given)).json()["result"]
            text = answer["content"][0]["text"]
            if answer["isError"] == may(needs, caller) or (answer["isError"] and not text.startswith("not_allowed: ")):
                wrong.append((name, caller, text))
    assert not wrong, "\n".join(map(str, wrong))


async def test_protocol_of_another_user_is_closed(gateway: GuardedGateway) -> None:
    for caller, status in ((None, 401), ("unknown", 401), ("stranger", 403)):
        for method in ("initialize", "tools/list", "tools/call", "resources/list", "prompts/list", "ping"):
            params: dict[str, Any] = {"name": "list_memories", "arguments": {}} if method == "tools/call" else {}
            assert (await gateway.mcp(method, caller, **params)).status_code == status, (method, caller)
    assert gateway.wire.sent == []


async def test_other_methods_open_no_door(gateway: GuardedGateway) -> None:
    for method in ("OPTIONS", "TRACE", "CONNECT", "PROPFIND"):
        for path in ("/v1/users/u1/memories", "/v1/me", "/mcp/users/u1"):
            assert (await gateway.ask(method, path)).status_code == 401
            assert (await gateway.ask(method, path, "reader")).status_code == 405
    assert gateway.wire.sent == []
    answer = await gateway.ask("OPTIONS", "/v1/users/u1/memories/x", "reader")
    assert answer.headers["allow"] == "DELETE, GET, HEAD, PATCH"


async def test_head_is_a_get_without_its_body(gateway: GuardedGateway) -> None:
    for path in ("/live", "/ready", "/openapi.json", "/v1/me", "/v1/users/u1/memories", "/v1/users/u1/memories/none"):
        got, head = [await gateway.ask(method, path, "reader") for method in ("GET", "HEAD")]
        assert head.status_code == got.status_code, path
        assert head.content == b"", path
        assert head.headers["content-length"] == str(len(got.content)), path
    assert (await gateway.ask("HEAD", "/v1/users/u1/memories")).status_code == 401
    assert (await gateway.ask("HEAD", "/v1/users/u1/memories", "writer")).status_code == 403
    for path in ("/v1/users/u1/events", "/v1/users/u1/export", "/mcp/users/u1", "/v1/users/u1/turns"):
        assert (await gateway.ask("HEAD", path, "owner")).status_code == 405, path


async def test_nothing_else_answers_without_a_key(gateway: GuardedGateway) -> None:
    for path in CLOSED_PATHS:
        for method in ("GET", "POST", "HEAD"):
            assert (await gateway.ask(method, path)).status_code == 401, path
            assert (await gateway.ask(method, path, "owner")).status_code == 404, path


CLOSED_PATHS = (
    "/docs", "/redoc", "/docs/oauth2-redirect", "/metrics", "/", "/v1", "/v1/", "/admin", "/static/x", "/mem0",
    "/live/", "//live", "/LIVE", "/live%2f..%2fv1/me", "/%6cive", "/openapi.json/", "/live;x=1", "/live%00",
)  # fmt: skip
"""Paths that frameworks serve unasked, and other spellings of those that need no key."""
