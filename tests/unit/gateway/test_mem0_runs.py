"""A search of mem0's run finds the run's best memories, however many others match better at the same time."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from gateway.mem0.calls import MAX_HITS, MAX_SEARCHES
from gateway.mem0.routes import mem0_routes
from gateway.service.service import MemoryService
from tests.fakes.wire import FakeWire, Json
from tests.worlds.gateway import http_over

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
SCOPE = {"user_id": "u1", "project_id": "default"}


def memory(number: int, run: str, score: float) -> Json:
    at = BEGIN + timedelta(seconds=number)
    fields: Json = {"memory_id": f"{run}-{number}", "conversation_id": run, "text": run, "score": score}
    return fields | {"occurred_at": at.isoformat(), "scope": SCOPE, "speaker": None, "role": "user"}


MINE = [memory(number, "r1", 0.1 + number / 10_000) for number in range(0, 900, 90)]
OTHERS = [memory(number, "r2", 0.9) for number in range(900)]


def found(asked: Json) -> Json:
    """Answer as the service does: the best hits of a time."""
    hits = [memory for memory in MINE + OTHERS if asked["since"] <= memory["occurred_at"] < asked["until"]]
    return {"hits": sorted(hits, key=lambda hit: -hit["score"])[: asked["top_k"]]}


@pytest.fixture
async def http(wire: FakeWire) -> AsyncIterator[httpx.AsyncClient]:
    conversation = {"first": MINE[0]["occurred_at"], "last": MINE[-1]["occurred_at"]}
    by_id = {memory["memory_id"]: memory for memory in MINE + OTHERS}
    wire.results = {
        "retrieve.v1": found,
        "list.v1": {"items": [conversation], "next": None, "total": 1},
        "get_memory": lambda asked: by_id[asked["arguments"]["memory_id"]],
    }
    service = MemoryService(wire)
    async with http_over(service, routes=mem0_routes(service).routes) as client:
        yield client


async def searched(http: httpx.AsyncClient, **asked: Any) -> list[str]:
    answer = await http.post("/mem0/search", json={"user_id": "u1", "query": "q", **asked})
    assert answer.status_code == 200, answer.text
    return [result["id"] for result in answer.json()["results"]]


async def test_all_of_a_run_is_found_among_better_matches(http: httpx.AsyncClient, wire: FakeWire) -> None:
    best_first = [memory["memory_id"] for memory in reversed(MINE)]
    assert await searched(http, run_id="r1") == best_first
    assert await searched(http, run_id="r1", top_k=3) == best_first[:3]
    assert sum(record["schema"] == "retrieve.v1" for record in wire.records) <= 2 * MAX_SEARCHES


async def test_a_run_that_is_found_at_once_is_searched_once(http: httpx.AsyncClient, wire: FakeWire) -> None:
    assert len(await searched(http, run_id="r2", top_k=5)) == 5
    assert [record["top_k"] for record in wire.records if record["schema"] == "retrieve.v1"] == [MAX_HITS]
