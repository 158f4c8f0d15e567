"""Reads over HTTP: bodies and queries become records; what the service does not know is refused before it is asked."""

import json
from typing import Any

import httpx
import pytest
from starlette.datastructures import Headers

from gateway.http.calls import is_async, wait_of
from gateway.service.calls import Caller
from schemas.state.policies import Grant
from tests.fakes.wire import FakeWire
from tests.worlds.gateway import http_over

PAGE: dict[str, Any] = {"items": [], "next": None, "total": 0}

SHARES_APP = True


async def test_a_search_is_a_retrieve_record(http: httpx.AsyncClient, wire: FakeWire) -> None:
    body = {"query": "q", "project_id": ["p1", "p2"], "top_k": 5, "mode": None, "read_after": "1:17"}
    answer = await http.post("/v1/users/u1/memories/search", json=body)
    assert answer.json()["warnings"] == []
    [record] = wire.records
    assert record["schema"] == "retrieve.v1"
    assert record["scope"] == {"user_id": "u1", "project_id": ["p1", "p2"]}
    assert record["query"] == "q"
    assert record["top_k"] == 5
    assert record["read_after"] == 17


@pytest.mark.parametrize("rerank", [True, False, None, "local"])
async def test_a_search_says_what_orders_its_hits(http: httpx.AsyncClient, wire: FakeWire, rerank: object) -> None:
    await http.post("/v1/users/u1/memories/search", json={"query": "q", "rerank": rerank})
    assert wire.records[0].get("rerank") == rerank


async def test_query_parameters_are_a_list_record(http: httpx.AsyncClient, wire: FakeWire) -> None:
    wire.results["list.v1"] = PAGE
    query = "project_id=p1&project_id=p2&types=episodic&limit=7&include_superseded=true&since=2026-03-01T09:30:00Z"
    assert (await http.get(f"/v1/users/u1/memories?{query}&mode=a&mode=b")).status_code == 200
    [record] = wire.records
    assert record["scope"] == {"user_id": "u1", "project_id": ["p1", "p2"]}
    assert record["what"] == "memories"
    assert record["types"] == ["episodic"]
    assert record["limit"] == 7
    assert record["mode"] == ["a", "b"]
    assert record["include_superseded"] is True
    assert record["since"] == "2026-03-01T09:30:00Z"


async def test_filters_are_json_in_a_query(http: httpx.AsyncClient, wire: FakeWire) -> None:
    wire.results["list.v1"] = PAGE
    filters = {"speaker": ["Ana"], "metadata": {"ticket": [7, "7", True]}}
    await http.get("/v1/users/u1/memories", params={"filters": json.dumps(filters)})
    assert wire.records[0]["filters"] == filters


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/memories?filters=Ana", "filters"),
        ('/memories?filters={"colour":"red"}', "filters.colour"),
        ('/memories?filters={"speaker":null}', "filters.speaker"),
        ("/memories?filters={}&filters={}", "filters"),
        ("/memories?limit=0", "limit"),
        ("/memories?limit=many", "limit"),
        ("/memories?lmit=5", "lmit"),
        ("/memories?types=everything", "types.0"),
        ("/memories?read_after=soon", "read_after"),
        ("/memories?read_after=2:7", "read_after"),
        ("/conversations?since=yesterday", "since"),
        ("/map?limit=20001", "limit"),
        ("/modes?project_id=", "project_id"),
    ],
)
async def test_a_wrong_parameter_is_named(http: httpx.AsyncClient, wire: FakeWire, path: str, field: str) -> None:
    answer = await http.get(f"/v1/users/u1{path}")
    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid_value"
    assert answer.json()["field"] == field
    assert wire.sent == []


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"query": 7}, "invalid_value", "query"),
        ({"query": "q", "top_k": 101}, "invalid_value", "top_k"),
        ({"query": "q", "topk": 1}, "invalid_value", "topk"),
        ({"query": "q", "rerank": "remote"}, "invalid_value", "rerank"),
        ({"query": "q", "scope": {"user_id": "u2"}}, "invalid_value", "scope"),
        ({"query": "q", "user_id": "u2"}, "invalid_value", "user_id"),
        ({"query": "q", "project_id": []}, "invalid_value", "project_id"),
        ({"query": "q", "project_id": "p" * 257}, "invalid_value", "project_id"),
        ({"query": "x" * 32_769}, "too_large", "query"),
    ],
)
async def test_a_wrong_field_is_named(
    http: httpx.AsyncClient, wire: FakeWire, body: dict[str, Any], code: str, field: str
) -> None:
    answer = await http.post("/v1/users/u1/memories/search", json=body)
    assert answer.json()["code"] == code
    assert answer.json()["field"] == field
    assert wire.sent == []


async def test_an_edit_repeats_the_turn_with_another_text(http: httpx.AsyncClient, wire: FakeWire) -> None:
    scope = {"user_id": "u1", "project_id": "p1"}
    turn = {"turn_id": "t1", "conversation_id": "c1", "role": "user", "speaker": "Ana", "metadata": {"a": 1}}
    wire.results["get_memory"] = {"memory_id": "m1", "scope": scope, "mode": "journal", "text": "old", **turn}
    assert (await http.patch("/v1/users/u1/memories/m1", json={"text": "new"})).status_code == 200
    [sent] = [record for record in wire.records if record["schema"] == "turn.v1"]
    assert sent == {"schema": "turn.v1", "scope": scope, "content": "new", **turn}


@pytest.mark.parametrize(
    ("query", "status"),
    [("", 200), ("?project_id=*", 200), ("?project_id=p1&project_id=p7", 200), ("?project_id=p1&project_id=p2", 404)],
)
async def test_a_memory_of_any_project_takes_one_request(
    http: httpx.AsyncClient, wire: FakeWire, query: str, status: int
) -> None:
    wire.results["get_memory"] = {"memory_id": "m1", "scope": {"user_id": "u1", "project_id": "p7"}}
    assert (await http.get(f"/v1/users/u1/memories/m1{query}")).status_code == status
    [sent] = wire.records
    assert sent["arguments"] == {"memory_id": "m1", "any_project": True}


@pytest.mark.parametrize(("project", "status"), [("p7", 200), ("p8", 404)])
async def test_a_memory_is_looked_for_where_the_grants_admit(wire: FakeWire, project: str, status: int) -> None:
    class Reader:
        async def caller_of(self, headers: Headers, address: str) -> Caller:
            grant = Grant.model_validate({"user_id": "u1", "project_id": ["p7"], "may": ["read"]})
            return Caller("k1", "app", grants=(grant,))

    wire.results["get_memory"] = {"memory_id": "m1", "scope": {"user_id": "u1", "project_id": project}}
    async with http_over(wire, callers=Reader()) as http:
        assert (await http.get("/v1/users/u1/memories/m1")).status_code == status
    assert [record["scope"]["project_id"] for record in wire.records] == ["p7"]


@pytest.mark.parametrize("body", [{}, {"mode": "a", "text": "b"}, {"mode": None}])
async def test_a_change_of_nothing_or_of_two_things_is_refused(http: httpx.AsyncClient, body: dict[str, Any]) -> None:
    assert (await http.patch("/v1/users/u1/memories/m1", json=body)).status_code == 422


async def test_a_job_that_is_left_alone_has_an_address(http: httpx.AsyncClient, wire: FakeWire) -> None:
    later = {"Prefer": "respond-async"}
    started = await http.post("/v1/users/a%2Fb/jobs/rebuild", json={"mode": "x"}, headers=later)
    assert started.status_code == 202
    assert started.headers["location"] == "/v1/users/a%2Fb/jobs/rebuild-1-0"
    wire.results["get_job"] = {"state": "running"}
    assert (await http.get(started.headers["location"])).status_code == 202
    wire.results["get_job"] = {"state": "done", "result": {"processed": 4}, "error": None}
    assert (await http.get(started.headers["location"])).json() == {"processed": 4}
    wire.results["get_job"] = {"state": "failed", "error": {"code": "unknown_mode", "message": "no", "field": "mode"}}
    assert (await http.get(started.headers["location"])).status_code == 422


@pytest.mark.parametrize(
    ("prefer", "seconds"),
    [(None, 10), ("wait=0.5", 0.5), ("respond-async, wait=3", 3), ("wait=1000", 60), ("wait=0", 0.1), ("wait=x", 10)],
)
def test_the_wait_is_within_its_limits(prefer: str | None, seconds: float) -> None:
    assert wait_of(prefer) == seconds


def test_async_is_asked_for_by_name() -> None:
    assert is_async("wait=3, respond-async")
    assert not is_async("wait=3")
