"""Runs as pages: a list with filters, and one run as a waterfall with its models, costs and failure."""

from typing import Any

import httpx
import pytest

from gateway.pages.routes.runs import MIN_WIDTH, rows_of, totals_of
from gateway.service.service import MemoryService
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over

Json = dict[str, Any]


def run(run_id: str, part: str = "answer", **changes: Any) -> Json:
    known: Json = {
        "schema": "run.v1",
        "run_id": run_id,
        "pipeline": "retrieve",
        "part": part,
        "kind": "retrieve.v1",
        "at": "2026-03-01T09:30:00Z",
        "ms": 2000.0,
        "scope": {"user_id": "u1", "project_id": "p1"},
        "memory_id": None,
        "revision": {"number": 3, "hash": "abc"},
        "request": {"topic": "memory.retrieve", "partition": 2, "offset": 7, "bytes": 212, "request_id": "r-1"},
        "input": {"query_chars": 22},
        "steps": [{"step": "retrieve.recall", "at_ms": 500.0, "ms": 1000.0}],
        "models": [],
        "omitted": 0,
        "warnings": [],
        "outcome": {"hits": 2, "hits_ids": ["m1", "m2"]},
        "failure": None,
    }
    return known | changes


MODEL = {
    "step": "retrieve.rerank",
    "at_ms": 600.0,
    "ms": 100.0,
    "profile": "fast",
    "tokens_in": 1210,
    "tokens_out": 84,
    "cost_usd": 0.00031,
    "failure": None,
}
TIMEOUT = {**MODEL, "profile": None, "tokens_in": 0, "tokens_out": 0, "cost_usd": None, "failure": "timeout"}
FAILED = run(
    "memorize-0-1", "accept", scope={}, steps=[], outcome=None,
    failure={"code": "invalid_value", "field": "role", "is_dead_letter": True, "message": None},
)  # fmt: skip


async def page(wire: FakeWire, path: str, runs: list[Json], *, is_complete: bool = True) -> str:
    wire.results["list_runs"] = {"runs": runs, "is_complete": is_complete}
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    async with pages_over(MemoryService(wire)) as http:
        answer = await http.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text


async def test_runs_are_listed_with_time_models_and_failure(wire: FakeWire) -> None:
    text = await page(wire, "/admin/runs?user=u1", [run("retrieve-2-7", models=[MODEL]), FAILED], is_complete=False)
    assert '/admin/runs/retrieve-2-7?user=u1"' in text
    for shown in ("2.00 s", "1 call, 1,294 tokens, $0.000310", "failed: invalid value", "earlier ones"):
        assert shown in text, shown
    assert wire.records[0]["arguments"] == {"limit": 100}


async def test_a_question_is_shown_where_runs_have_texts(wire: FakeWire) -> None:
    text = await page(wire, "/admin/runs?user=u1", [run("retrieve-2-7", input={"query": "Where is <Kent>?"})])
    assert "Where is &lt;Kent&gt;?" in text


async def test_runs_of_one_turn_stand_together(wire: FakeWire) -> None:
    turn = [run(f"memorize-{number}", part, memory_id="m1") for number, part in enumerate(("index", "accept"))]
    text = await page(wire, "/admin/runs?user=u1", [turn[0], run("retrieve-2-7"), turn[1]])
    places = [text.index(f"/admin/runs/{name}") for name in ("memorize-0", "memorize-1", "retrieve-2-7")]
    assert places == sorted(places)
    assert text.count("its memory") == 1


async def test_turns_that_went_alike_are_one_group(wire: FakeWire) -> None:
    runs = [
        run(f"memorize-{turn}-{part}", part, memory_id=f"m{turn}") for turn in range(3) for part in ("accept", "index")
    ]
    text = await page(wire, "/admin/runs?user=u1", [*runs, run("retrieve-2-7"), FAILED])
    assert text.count("<tr>") == 1 + 2 + 2
    assert "and 2 more like these 2" in text
    assert "/admin/runs/memorize-2-index" in text


async def test_failures_of_different_reasons_are_not_folded(wire: FakeWire) -> None:
    other = {**FAILED, "run_id": "memorize-0-2", "failure": {**FAILED["failure"], "code": "too_large"}}
    text = await page(wire, "/admin/runs?user=u1", [FAILED, other])
    assert "more like it" not in text


async def test_filters_go_to_the_service(wire: FakeWire) -> None:
    text = await page(wire, "/admin/runs?user=u1&project=p1&pipeline=retrieve&failed=true", [])
    [asked] = [record for record in wire.records if record.get("command") == "list_runs"]
    assert asked["arguments"] == {"pipeline": "retrieve", "failed": True, "limit": 100}
    assert asked["scope"] == {"user_id": "u1", "project_id": "p1"}
    assert "No run matches" in text


async def test_runs_of_other_projects_are_left_out(wire: FakeWire) -> None:
    scope = {"user_id": "u1", "project_id": "p2"}
    runs = [run("own"), run("other", scope=scope), run("both", scope={**scope, "project_id": ["p1", "p2"]})]
    text = await page(wire, "/admin/runs?user=u1&project=p1", runs)
    assert [name in text for name in ("/runs/own", "/runs/other", "/runs/both")] == [True, False, True]


async def test_a_run_is_a_waterfall(wire: FakeWire) -> None:
    text = await page(wire, "/admin/runs/retrieve-2-7?user=u1", [run("retrieve-2-7", models=[MODEL, TIMEOUT])])
    assert '<rect x="25.0" y="1" width="50.0" height="6" class="step"/>' in text
    assert 'class="model failed"' in text
    for shown in ("retrieve.recall", "1,210 tokens in, 84 out", "timeout", "revision 3", "topic retrieve,"):
        assert shown in text, shown
    assert all(f"/admin/memories/{memory_id}?user=u1" in text for memory_id in ("m1", "m2"))
    assert "memory.retrieve" not in text


async def test_a_failure_leads_to_its_dead_letter(wire: FakeWire) -> None:
    text = await page(wire, "/admin/runs/memorize-0-1?user=u1", [FAILED])
    for shown in ("invalid_value", "field <code>role</code>", "/admin/dead-letters?user=u1", "before the first step"):
        assert shown in text, shown


async def test_the_parts_of_a_turn_are_shown_together(wire: FakeWire) -> None:
    accepted = run("memorize-0-1", "accept", memory_id="m1")
    embedded = run("index-m1-1", "index", memory_id="m1", kind=None, request=None)

    def listed(sent: Json) -> Json:
        is_one = "run_id" in sent["arguments"]
        return {"runs": [accepted] if is_one else [embedded, accepted], "is_complete": True}

    wire.results["list_runs"] = listed
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    async with pages_over(MemoryService(wire)) as http:
        text = (await http.get("/admin/runs/memorize-0-1?user=u1")).text
    assert "/admin/runs/index-m1-1" in text
    assert text.count('class="waterfall"') == 2
    assert "/admin/memories/m1?" in text


async def test_an_unknown_run_is_not_found(wire: FakeWire) -> None:
    wire.results["list_runs"] = {"runs": [], "is_complete": True}
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    async with pages_over(MemoryService(wire)) as http:
        assert (await http.get("/admin/runs/gone?user=u1")).status_code == 404


def test_bars_stay_within_the_picture() -> None:
    steps = [{"step": "a", "at_ms": 0.0, "ms": 0.0}, {"step": "b", "at_ms": 99.99, "ms": 5.0}]
    first, last = rows_of({"ms": 100.0, "steps": steps, "models": []})
    assert first.width == MIN_WIDTH
    assert last.start + last.width <= 100
    assert rows_of({"ms": 0.0, "steps": [], "models": [MODEL]})[0].model == MODEL


def test_costs_are_known_if_each_is() -> None:
    assert totals_of({"models": [MODEL, TIMEOUT]}) == (2, 1210, 84, 0.00031)
    assert totals_of({"models": [MODEL, {**MODEL, "cost_usd": None}]}).cost_usd is None
    assert totals_of({"models": [TIMEOUT]}).cost_usd is None


@pytest.mark.parametrize(("query", "status"), [("failed=true&limit=5", 200), ("failed=maybe", 422), ("limit=201", 422)])
async def test_runs_over_http(http: httpx.AsyncClient, wire: FakeWire, query: str, status: int) -> None:
    wire.results["list_runs"] = {"runs": [run("retrieve-2-7")], "is_complete": True}
    answer = await http.get(f"/v1/users/u1/runs?{query}")
    assert answer.status_code == status
    if status == 200:
        [asked] = wire.records
        assert asked["arguments"] == {"failed": True, "limit": 5}
        assert answer.json()["runs"][0]["request"]["topic"] == "retrieve"
