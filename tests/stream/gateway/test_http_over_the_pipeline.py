"""The HTTP door over the whole pipeline in memory: what a caller stores is found, edited, exported and forgotten."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.worlds.gateway import http_over
from tests.worlds.in_memory_client import InMemoryTransport
from tests.worlds.in_memory_pipeline import InMemoryPipeline

USER = "/v1/users/u1"


@pytest.fixture
async def http(pipeline: InMemoryPipeline) -> AsyncIterator[httpx.AsyncClient]:
    async with http_over(InMemoryTransport(pipeline)) as client:
        yield client


async def say(http: httpx.AsyncClient, content: str, user: str = USER, **fields: Any) -> dict[str, Any]:
    answer = await http.post(
        f"{user}/turns", json={"conversation_id": "c1", "role": "user", "content": content, **fields}
    )
    assert answer.status_code == 201, answer.text
    said: dict[str, Any] = answer.json()
    return said


async def test_a_turn_is_found_edited_and_forgotten(http: httpx.AsyncClient) -> None:
    said = await say(http, "The lamp is in the cellar.", project_id="p1")
    path = f"{USER}/memories/{said['memory_id']}"
    search = {"query": "lamp", "project_id": "*", "read_after": said["read_after"]}
    [hit] = (await http.post(f"{USER}/memories/search", json=search)).json()["hits"]
    assert hit["memory_id"] == said["memory_id"]
    edited = (await http.patch(path, json={"text": "The lamp is in the attic."})).json()
    assert edited["text"] == "The lamp is in the attic."
    assert edited["version"] == 2
    assert (await http.delete(path)).json()["forgotten"] >= 1
    assert (await http.get(path)).status_code == 404


async def test_a_foreign_memory_is_as_one_that_is_not_there(http: httpx.AsyncClient) -> None:
    said = await say(http, "The diary is under the floor.")
    same = {"request_id": None}
    for method, body in (("GET", None), ("PATCH", {"mode": "general"}), ("PATCH", {"text": "Mine now."})):
        foreign = await http.request(method, f"/v1/users/u2/memories/{said['memory_id']}", json=body)
        missing = await http.request(method, "/v1/users/u2/memories/none", json=body)
        assert foreign.status_code == 404
        assert foreign.json() | same == missing.json() | same
    assert (await http.delete(f"/v1/users/u2/memories/{said['memory_id']}")).json() == {"forgotten": 0}


async def test_an_export_is_an_import(http: httpx.AsyncClient) -> None:
    resource = {"uri": "s3://b/a.png", "media_type": "image/png", "sha256": None, "text": "a lamp"}
    await say(http, "First.", turn_id="t1", metadata={"n": 1}, resources=[resource], importance=0.5, speaker="Ana")
    await say(http, "Second.", turn_id="t2", project_id="p2")
    exported = await http.get(f"{USER}/export")
    lines = [json.loads(line) for line in exported.text.splitlines()]
    assert [(line["turn_id"], line["scope"]["project_id"]) for line in lines] == [("t1", "default"), ("t2", "p2")]
    assert lines[0]["resources"] == [resource]
    assert lines[0]["metadata"] == {"n": 1}
    assert lines[0]["importance"] == 0.5
    assert lines[0]["mode"] == "general"
    bodies = [{**line, "project_id": line["scope"]["project_id"]} for line in lines]
    turns = [{name: value for name, value in body.items() if name not in ("schema", "scope")} for body in bodies]
    again = await http.post(f"{USER}/turns", json={"turns": turns})
    assert again.status_code == 200
    assert all(result["duplicate"] for result in again.json()["results"])


async def test_a_list_goes_on_where_it_ended(http: httpx.AsyncClient) -> None:
    for number in range(5):
        await say(http, f"Remark {number}.", occurred_at=f"2026-03-01T10:0{number}:00Z")
    first = (await http.get(f"{USER}/memories?limit=3")).json()
    second = (await http.get(f"{USER}/memories", params={"limit": 3, "cursor": first["next"]})).json()
    assert [item["text"] for item in first["items"] + second["items"]] == [f"Remark {n}." for n in (4, 3, 2, 1, 0)]
    assert first["total"] == 5
    assert second["next"] is None


async def test_a_job_that_is_left_alone_answers_later(http: httpx.AsyncClient) -> None:
    await say(http, "The tomatoes need water.")
    started = await http.post(f"{USER}/jobs/rebuild", json={}, headers={"Prefer": "respond-async"})
    assert started.status_code == 202
    while (done := await http.get(started.headers["location"])).status_code == 202:
        await asyncio.sleep(0.01)
    assert done.status_code == 200
    assert done.json()["processed"] >= 1
    assert (await http.get("/v1/users/u2/jobs/rebuild-0-0")).status_code == 404


async def test_filters_are_set_shown_and_exported(http: httpx.AsyncClient) -> None:
    said = await say(http, "The safe code is 4711.", private=True)
    path = f"{USER}/memories/{said['memory_id']}"
    changed = (await http.patch(path, json={"searchable": False})).json()
    assert changed["searchable"] is False
    assert changed["private"] is True
    assert (await http.post(f"{USER}/memories/search", json={"query": "safe code"})).json()["hits"] == []
    [listed] = (await http.get(f"{USER}/memories")).json()["items"]
    assert listed["searchable"] is False
    assert listed["private"] is True
    assert listed["embedding_status"] == "not_applicable"
    [line] = [json.loads(line) for line in (await http.get(f"{USER}/export")).text.splitlines()]
    assert line["searchable"] is False
    assert line["private"] is True
    edited = (await http.patch(path, json={"text": "The safe code is 1174."})).json()
    assert edited["searchable"] is False
    assert edited["private"] is True
    two = await http.patch(path, json={"searchable": True, "text": "Both."})
    assert two.status_code == 422
    assert two.json()["code"] == "invalid_value"


async def test_mode_is_declared_with_filters(http: httpx.AsyncClient) -> None:
    body = {"embedder": "tiny32", "searchable": False, "private": True}
    declared = (await http.put(f"{USER}/modes/vault", json=body)).json()
    assert declared["searchable"] is False
    assert declared["private"] is True
    said = await say(http, "The vault is green.", mode="vault")
    record = (await http.get(f"{USER}/memories/{said['memory_id']}")).json()
    assert record["searchable"] is False
    assert record["own_visibility"]["searchable"] is True
