"""The overview: of the deployment and of a user, live, and without a worker."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from modestream_client.failures import MemoryUnreachable

from gateway.pages.live import as_event, live_answer
from gateway.pages.routes.health import MANY_CORRECTIONS, MIN_COUNT, USAGE, corrections, histories_of_modes
from gateway.service.boundaries import Boundaries
from gateway.service.calls import Caller
from gateway.service.service import MemoryService
from schemas.state.policies import Grant
from tests.builders.boundaries import told
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over

UNUSED = dict.fromkeys(USAGE, 0)

HEALTH: dict[str, Any] = {
    "modes": {
        "general": {"ready": 1, "pending": 0, "stale": 0, "failed": 0, "error": None},
        "code": {"ready": 0, "pending": 3, "stale": 0, "failed": 0, "error": {"message": "no model <b>code</b>"}},
    },
    "jobs": [{"job_id": "backfill-0-1", "command": "backfill", "mode": "code", "done": 1, "total": 3}],
    "last_jobs": [
        {
            "job_id": "consolidate-0-1",
            "command": "consolidate",
            "project": "p1",
            "at": "2026-03-01T09:30:00Z",
            "state": "done",
            "counts": {"created": 4},
            "error": None,
        }
    ],
    "growth": {"unit": "day", "periods": [["2026-03-01", 3], ["2026-03-04", 1]]},
    "telemetry": {
        "modes_in_use": 2,
        "corrections": 1,
        "weeks": [
            {"week": "2026-02-23", "modes": {"code": {**UNUSED, "memories": 30, "questions": 21, "useful": 2}}},
            {"week": "2026-03-02", "modes": {"code": {**UNUSED, "questions": 4}}},
        ],
        "user": {"questions": 40, "cross_mode_questions": 30},
    },
    "lag": {"memory.turns": 12},
    "vector_index": "ready",
    "embedders": {
        "general": {"state": "ready", "error": None},
        "BAAI/small": {"state": "loading", "error": None, "fetched_bytes": 12_000_000, "total_bytes": 67_000_000},
        "BAAI/large": {"state": "failed", "error": "make room on the disk", "code": "disk_full"},
    },
    "language_model": {
        "main": {
            "model": "m",
            "state": "open",
            "calls": 4,
            "failures": 3,
            "tokens_in": 1200,
            "tokens_out": 34,
            "cost_usd": 0.5,
            "last_error": "<i>no</i>",
        }
    },
}


@pytest.fixture
def boundaries() -> Boundaries:
    made = Boundaries()
    told(made, "u1")
    told(made, "u<2>", modes=("general",))
    return made


@pytest.fixture
def wire() -> FakeWire:
    made = FakeWire()
    made.results["health"] = HEALTH
    made.results["list.v1"] = {"items": [], "next": None}
    return made


@pytest.fixture
def service(wire: FakeWire, boundaries: Boundaries) -> MemoryService:
    return MemoryService(wire, boundaries=boundaries)


async def test_a_user_shows_numbers_and_state(service: MemoryService) -> None:
    async with pages_over(service) as http:
        page = (await http.get("/admin/health?user=u1")).text
    for part in ("turns 12", "paused after failures", "backfill</strong> of code runs: 1 of 3", "created 4", "75.0 %"):
        assert part in page, part
    for part in ("12 of 67 MB fetched", "failed: disk full", "make room on the disk", "1,234 tokens for US$ 0.50"):
        assert part in page, part
    assert "&lt;i&gt;no" in page
    assert "<b>code" not in page


@pytest.mark.parametrize(("embedder", "is_told"), [("BAAI/large", True), ("general", False)])
async def test_missing_embedder_is_told_to_users_of_it_alone(wire: FakeWire, embedder: str, is_told: bool) -> None:
    boundaries = Boundaries()
    told(boundaries, "u1", embedder=embedder)
    async with pages_over(MemoryService(wire, boundaries=boundaries)) as http:
        part = (await http.get("/admin/attention?user=u1")).text
    assert ("The embedder BAAI/large is missing" in part) is is_told


async def test_too_few_cases_are_said_once(service: MemoryService) -> None:
    async with pages_over(service) as http:
        page = (await http.get("/admin/health?user=u1")).text
    assert page.lower().count("fewer than 20 cases") == 1


async def test_a_user_shows_how_each_mode_did_by_week(service: MemoryService) -> None:
    async with pages_over(service) as http:
        page = (await http.get("/admin/health?user=u1")).text
    assert page.index("2026-03-02") < page.index("2026-02-23")
    assert "It pays" in page
    assert "2 of 2" in page


@pytest.mark.parametrize(
    ("counts", "level", "says"),
    [
        ({"memories": 90, "corrections": 10, "questions": 50}, "warn", "moved elsewhere"),
        ({"memories": 90, "questions": 50, "cross_mode_questions": 26}, "warn", "together with other modes"),
        ({"memories": 90, "questions": 50, "useful": 5, "not_useful": 15}, "warn", "not useful"),
        ({"memories": 20}, "warn", "nobody asks"),
        ({"memories": 90, "corrections": 2, "questions": 50, "cross_mode_questions": 20}, "good", "It pays"),
        ({"memories": 9, "corrections": 9, "questions": 9}, "unknown", ""),
    ],
)
def test_the_weeks_of_a_mode_say_whether_it_pays(counts: dict[str, int], level: str, says: str) -> None:
    [history] = histories_of_modes([{"week": "2026-02-23", "modes": {"code": {**UNUSED, **counts}}}])
    assert history.level == level
    assert says in history.verdict


async def test_a_star_for_the_project_is_all_projects(service: MemoryService, wire: FakeWire) -> None:
    async with pages_over(service) as http:
        await http.get("/admin/health?user=u1&project=*")
    [health] = [record for record in wire.records if record.get("command") == "health"]
    assert health["scope"] == {"user_id": "u1"}


async def test_an_embedder_is_compared_by_a_job(service: MemoryService, wire: FakeWire, boundaries: Boundaries) -> None:
    told(boundaries, "u1", embedder="code-embedder")
    found = {
        "embedder": "code-embedder",
        "turns": 60,
        "conversations": 9,
        "recall_at_10": 0.5,
        "sentence": "Keep <it>.",
    }
    found |= {"general_recall_at_10": 0.25, "difference": 0.25, "margin": 0.1, "verdict": "better"}
    job = {**HEALTH["last_jobs"][0], "command": "compare_embedders", "compared": {"code": found}}
    wire.results["health"] = {**HEALTH, "last_jobs": [job]}
    async with pages_over(service) as http:
        page = (await http.get("/admin/health?user=u1&project=p1")).text
        answer = await http.post("/admin/comparisons?user=u1&project=p1", data={"of": "code"})
    assert "Compare code with general" in page
    assert "Keep &lt;it&gt;" in page
    assert "+25.0 points" in page
    assert answer.status_code == 303
    sent = wire.records[-1]
    assert sent["command"] == "compare_embedders"
    assert sent["arguments"] == {"mode": "code", "all_projects": False}
    assert sent["scope"] == {"user_id": "u1", "project_id": "p1"}


SHARES = ("recall_at_5", "recall_at_10", "context_coverage")

EVALUATED: dict[str, Any] = {
    "at": "2026-03-01T09:30:00Z",
    "revision": 2,
    "other": {"edits_of": 2, "hash": "ab"},
    "questions": 40,
    "modes": {"code": {"questions": 40, "current": dict.fromkeys(SHARES, 0.75), "other": dict.fromkeys(SHARES, 0.5)}},
    "all": {"questions": 40, "current": dict.fromkeys(SHARES, 0.75), "other": dict.fromkeys(SHARES, 0.5)},
    "difference": {name: {"mean": -0.25, "low": -0.4, "high": -0.1} for name in SHARES},
    "verdict": "worse",
    "sentence": "It finds <less>.",
}


async def health_page(service: MemoryService, caller: Caller | None = None) -> str:
    async with pages_over(service, caller) as http:
        return (await http.get("/admin/health?user=u1&project=p1")).text


async def test_last_evaluation_is_shown_by_mode(service: MemoryService, wire: FakeWire) -> None:
    wire.results["health"] = {**HEALTH, "evaluation": EVALUATED}
    assert "75.0 % → 50.0 %" in await health_page(service)


async def test_evaluation_of_the_current_revision_alone_is_shown(service: MemoryService, wire: FakeWire) -> None:
    of_all = {"questions": 40, "current": dict.fromkeys(SHARES, 0.75)}
    alone = {"at": "2026-03-01T09:30:00Z", "revision": 2, "questions": 40, "modes": {"code": of_all}, "all": of_all}
    wire.results["health"] = {**HEALTH, "evaluation": alone}
    assert "by revision 2</p>" in await health_page(service)


async def test_verdict_of_the_last_evaluation_is_shown(service: MemoryService, wire: FakeWire) -> None:
    wire.results["health"] = {**HEALTH, "evaluation": EVALUATED}
    assert "edits of revision 2: It finds &lt;less&gt;." in await health_page(service)


async def test_operator_starts_an_evaluation(service: MemoryService, wire: FakeWire) -> None:
    async with pages_over(service, Caller(is_operator=True)) as http:
        await http.post("/admin/health/jobs?user=u1&project=p1", data={"job": "evaluate"})
    assert wire.records[-1]["command"] == "evaluate"


async def test_evaluation_is_offered_to_operators_alone(service: MemoryService) -> None:
    manager = Caller("app", "app", grants=(Grant.model_validate({"user_id": "u1", "may": ["read", "manage"]}),))
    assert "Measure recall" not in await health_page(service, manager)


async def test_a_comparison_needs_manage(service: MemoryService, wire: FakeWire) -> None:
    reader = Caller("app", "app", grants=(Grant.model_validate({"user_id": "u1", "may": ["read"]}),))
    async with pages_over(service, reader) as http:
        answer = await http.post("/admin/comparisons?user=u1", data={"of": "code"})
    assert answer.status_code == 403
    assert wire.records == []


async def test_the_deployment_shows_its_users(service: MemoryService) -> None:
    async with pages_over(service) as http:
        page = (await http.get("/admin")).text
    assert "u&lt;2&gt;" in page
    assert "<h1>Users</h1>" in page


async def test_one_user_alone_is_chosen_unless_all_are_asked_for(wire: FakeWire) -> None:
    alone = Boundaries()
    told(alone, "u1")
    async with pages_over(MemoryService(wire, boundaries=alone)) as http:
        assert "<h1>u1</h1>" in (await http.get("/admin")).text
        everyone = (await http.get("/admin?everyone=1")).text
    assert "<h1>Users</h1>" in everyone
    assert "/admin/dead-letters?everyone=1" in everyone
    assert '<a href="/admin?user=u1">' in everyone


@pytest.mark.parametrize("address", ["/admin?user=u1", "/admin", "/admin/health?user=u1"])
async def test_without_a_worker_it_says_so(service: MemoryService, wire: FakeWire, address: str) -> None:
    wire.failure = MemoryUnreachable("gone")
    async with pages_over(service) as http:
        answer = await http.get(address)
    assert answer.status_code == 200


async def test_a_caller_sees_totals_of_its_users_and_no_foreign_one(service: MemoryService) -> None:
    caller = Caller("app", "app", grants=(Grant.model_validate({"user_id": "u1"}),))
    async with pages_over(service, caller) as http:
        page = (await http.get("/admin?everyone=1")).text
        assert (await http.get("/admin?user=u<2>")).status_code == 403
        assert (await http.get("/admin/live/events?user=u<2>")).status_code == 403
    assert "u&lt;2&gt;" not in page


async def test_live_numbers_are_sent_when_they_change(boundaries: Boundaries) -> None:
    users = MemoryService(FakeWire(), boundaries=boundaries).users

    async def render() -> str:
        return f"<p>\n{users.totals(Caller())['memories']}</p>"

    sent: list[str] = []

    async def listen() -> None:
        async for each in live_answer(render, boundaries).body_iterator:
            sent.append(str(each))  # noqa: PERF401 - the stream has no end

    listening = asyncio.create_task(listen())
    await asyncio.sleep(0.05)
    told(boundaries, "u1", memories=8)
    await asyncio.sleep(1.2)
    listening.cancel()
    with suppress(asyncio.CancelledError):
        await listening
    assert sent == ["data: <p>\ndata: 8</p>\n\n", "data: <p>\ndata: 12</p>\n\n"]


def test_an_event_has_one_data_line_for_each_line() -> None:
    assert as_event("a\n\nb") == "data: a\ndata: \ndata: b\n\n"


@pytest.mark.parametrize(("moved", "level"), [(0, "good"), (int(MANY_CORRECTIONS) + 1, "warn")])
def test_many_corrections_are_to_be_acted_on(moved: int, level: str) -> None:
    assert corrections(moved, 100).level == level
    assert corrections(moved, MIN_COUNT - 1).level == "unknown"


async def test_users_are_paged(wire: FakeWire) -> None:
    many = Boundaries()
    for number in range(300):
        told(many, f"u{number:04}")
    async with pages_over(MemoryService(wire, boundaries=many)) as http:
        page = (await http.get("/admin")).text
    assert page.count('<th scope="row"><a href="/admin?user=') == 50
    assert "More users" in page
