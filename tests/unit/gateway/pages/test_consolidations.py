"""Consolidations: runs are kept without texts and bounded, seen by those that may, and shown with what they changed."""

import json
from typing import Any

from gateway.service.calls import Call, Caller
from gateway.service.events import already_begun
from gateway.service.runs import MAX_RUNS, Runs
from gateway.service.service import MemoryService
from schemas.state.policies import Grant
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over, told_after

DIFF: list[dict[str, Any]] = [
    {"op": "distil", "memory_id": "m1", "before": None, "after": "a secret text"},
    {"op": "decay", "memory_id": "m2", "before": "0.8", "after": "0.15"},
]


def record(run: str, project: str = "p1", user: str = "u1", diff: list[dict[str, Any]] = DIFF) -> bytes:
    scope = {"user_id": user, "project_id": project}
    value = {"schema": "consolidated.v1", "run": run, "scope": scope, "at": "2026-03-01T03:00:00Z", "created": ["m1"]}
    return json.dumps({**value, "superseded": [], "modes": {"code": {"turns": 5}}, "diff": diff}).encode()


def runs_with(*records: bytes) -> Runs:
    runs = Runs(already_begun)
    for record in records:
        runs.apply(record)
    return runs


async def test_runs_are_newest_first_once_and_bounded() -> None:
    runs = runs_with(*(record(f"0-{number}") for number in range(MAX_RUNS + 5)), record("0-24"))
    listed = await runs.list(Call.within(Caller(), "u1"), None)
    assert [run.run for run in listed] == [f"0-{number}" for number in range(MAX_RUNS + 4, 4, -1)]


async def test_no_text_is_kept_and_a_forgotten_user_is_dropped() -> None:
    runs = runs_with(record("0-1"), b"{", b"", record("0-2", user="u/2"))
    [run] = await runs.list(Call.within(Caller(), "u1"), None)
    assert [(change.op, change.before, change.after) for change in run.diff] == [
        ("distil", None, None),
        ("decay", "0.8", "0.15"),
    ]
    runs.forget(b"u%2F2")
    assert await runs.list(Call.within(Caller(), "u/2"), None) == []


async def test_runs_of_projects_without_a_grant_are_not_listed() -> None:
    runs = runs_with(record("0-1"), record("0-2", project="p2"))
    caller = Caller(grants=(Grant.model_validate({"user_id": "u1", "project_id": "p2"}),))
    assert [run.run for run in await runs.list(Call.within(caller, "u1"), None)] == ["0-2"]


async def test_a_run_is_shown_with_the_texts_of_now(wire: FakeWire) -> None:
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    wire.results["get_memory"] = lambda sent: {
        "memory_id": sent["arguments"]["memory_id"],
        "text": "what it says now",
        "scope": {"user_id": "u1", "project_id": "p1"},
        "evidence": [{"turn_id": "t", "start": 0, "end": 1, "memory_id": "m9"}],
    }
    service = MemoryService(wire, runs=runs_with(record("0-1")))
    async with pages_over(service) as http:
        listed = (await http.get("/admin/consolidations?user=u1")).text
        page = (await http.get("/admin/consolidations/one/0-1?user=u1")).text
        assert (await http.get("/admin/consolidations/one/9-9?user=u1")).status_code == 404
    assert "/admin/consolidations/one/0-1?user=u1" in listed
    assert page.count("what it says now") == 2
    assert "weight 0.8 → 0.15" in page
    assert "/admin/memories/m9?user=u1" in page


async def test_the_turns_of_a_summary_are_kept_by_forgetting_it(wire: FakeWire) -> None:
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    sources = [{"turn_id": "t", "start": 0, "end": 1, "memory_id": memory_id} for memory_id in ("m8", "m9", "m9")]
    wire.results["get_memory"] = lambda sent: {
        "memory_id": sent["arguments"]["memory_id"],
        "text": "a summary",
        "origin": "distilled" if sent["arguments"]["memory_id"] == "m1" else "said",
        "scope": {"user_id": "u1", "project_id": "p1"},
        "evidence": sources,
    }
    wire.results["forget"] = {"forgotten": 1}
    async with pages_over(MemoryService(wire, runs=runs_with(record("0-1")))) as http:
        address = "/admin/consolidations/one/0-1?user=u1"
        page = (await http.get(address)).text
        kept = await http.post(address, data={"memory_id": "m1"})
        assert await told_after(http, kept) == "Kept its 2 turns: searches find them again. The summary is gone."
        refused = await http.post(address, data={"memory_id": "m2"})
        assert refused.status_code == 422
    assert page.count(">Keep its turns<") == 1
    forgotten = [sent["arguments"] for sent in wire.records if sent.get("command") == "forget"]
    assert forgotten == [{"memory_id": "m1"}]


async def test_a_run_is_started_in_the_project_of_the_form(wire: FakeWire) -> None:
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    async with pages_over(MemoryService(wire)) as http:
        answer = await http.post("/admin/consolidations?user=u1", data={"mode": "code", "project": "p1"})
    assert answer.headers["location"].startswith("/admin/consolidations?user=u1&job=consolidate-1-")
    [sent] = [record for record in wire.records if record["schema"] == "consolidate.v1"]
    assert sent["mode"] == "code"
    assert sent["scope"]["project_id"] == "p1"
