"""The map's page: its points as columns, what its forms move and declare, and suggestions of modes."""

import json
from html import unescape
from typing import Any

import pytest

from gateway.service.calls import Caller
from gateway.service.service import MemoryService
from schemas.state.policies import Grant
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over, undone

PAGE = "/admin/map?user=ana"
POINTS = "/admin/map/points?user=ana"
SUGGESTIONS = "/admin/map/suggestions?user=ana"
NASTY = "<script>alert(1)</script>"


def point(memory_id: str, conversation: str | None = "c1", **fields: Any) -> dict[str, Any]:
    return {
        "memory_id": memory_id,
        "x": 0.5,
        "y": -0.25,
        "conversation_id": conversation,
        "type": "episodic",
        "occurred_at": "2026-03-01T09:30:00Z",
        "text": NASTY,
    } | fields


def cloud(mode: str, *points: dict[str, Any], **fields: Any) -> dict[str, Any]:
    method = {"method": "neighbour_graph", "made_at": "2026-03-01T09:30:05Z", "settled": True, "left_out": 0}
    return {"mode": mode, "space": "5b2f", "points": list(points)} | method | fields


def listed(record: dict[str, Any]) -> dict[str, Any]:
    scope = {"user_id": "ana", "project_id": "home"}
    memory = {**point("m1"), "scope": scope, "mode": "journal"}
    items = {"memories": [memory], "projects": [{"scope": scope}]}[record["what"]]
    return {"items": items, "next": None, "total": len(items)}


@pytest.fixture
def wire() -> FakeWire:
    wire = FakeWire()
    wire.results["list.v1"] = listed
    embedder = {"name": "general", "dim": 384, "languages": "all", "megabytes": None}
    wire.results["list_modes"] = {"modes": [{"name": "general"}, {"name": "journal"}], "embedders": [embedder]}
    wire.results["set_memory_mode"] = lambda record: {"moved": len(record["arguments"]["memory_ids"])}
    wire.results["map.v1"] = {
        "clouds": [cloud("code", point("m1"), point("m2", None)), cloud("journal", settled=False)]
    }
    examples = [{"memory_id": "m2", "text": NASTY, "occurred_at": "2026-03-01T09:30:00Z"}]
    wire.results["suggest_modes"] = {
        "suggestions": [
            {
                "name": name,
                "size": 16,
                "terms": ["soup"],
                "in_mode": mode,
                "examples": examples,
                "memory_ids": ["m1", "m2"],
            }
            for name, mode in (("kitchen", "general"), ("garden", "journal"))
        ],
        "looked_at": 32,
    }
    return wire


def commands(wire: FakeWire, name: str) -> list[dict[str, Any]]:
    return [record for record in wire.records if record.get("command") == name]


async def test_points_of_a_span_of_time_are_asked_for(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        await http.get(f"{POINTS}&since=2026-03-01T00:00:00.000Z&until=2026-03-02T00:00:00.000Z")
    [asked] = [record for record in wire.records if record["schema"] == "map.v1"]
    assert asked["since"] == "2026-03-01T00:00:00.000Z"
    assert asked["until"] == "2026-03-02T00:00:00.000Z"


async def test_clouds_stay_apart_and_points_are_columns(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        answer = await http.get(POINTS)
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["cache-control"] == "no-store"
    code, journal = answer.json()["clouds"]
    assert code["mode"] == "code"
    assert code["ids"] == ["m1", "m2"]
    assert code["x"] == [0.5, 0.5]
    assert code["y"] == [-0.25, -0.25]
    assert code["conversation"] == {"names": ["c1", ""], "of": [0, 1]}
    assert code["at"] == [1772357400] * 2
    assert code["text"] == [NASTY] * 2
    assert journal["ids"] == []
    assert journal["settled"] is False
    [asked] = [record for record in wire.records if record["schema"] == "map.v1"]
    assert asked["mode"] == "*"
    assert asked["limit"] == 20_000
    assert asked["scope"]["project_id"] == "*"


async def test_points_of_the_picked_mode_and_project_alone_are_asked_for(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        answer = await http.get(POINTS + "&mode=code&project=home", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in answer.headers
    assert json.loads(answer.content)["clouds"]
    [asked] = [record for record in wire.records if record["schema"] == "map.v1"]
    assert asked["mode"] == "code"
    assert asked["scope"]["project_id"] == "home"


async def test_page_has_a_table_and_forms_without_a_script(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get(PAGE + "&colour=age")).text
    assert NASTY not in page
    assert NASTY in unescape(page)
    assert 'name="memory_id" value="m1"' in page
    assert 'value="age" selected' in page
    assert "<option>journal</option>" in page
    assert "style=" not in page


async def test_the_first_points_are_requested_with_the_page(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        page = (await http.get("/admin/map?user=u1")).text
    assert 'rel="preload" as="fetch" crossorigin href="/admin/map/points?user=u1&amp;limit=1000"' in page


async def test_user_without_memories_is_told_what_to_do(wire: FakeWire) -> None:
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    async with pages_over(MemoryService(wire)) as http:
        assert "There is nothing to draw here" in (await http.get(PAGE)).text
        assert "show all modes" in (await http.get(PAGE + "&mode=journal")).text


async def test_selected_memories_move_in_the_project_where_they_are(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        sent = {"memory_ids": "m1 m2 m1", "to": "journal"}
        answer = await http.post("/admin/map/move?user=ana&mode=general&colour=age", data=sent)
    assert answer.status_code == 303
    address = "/admin/map?user=ana&mode=journal&colour=age"
    assert answer.headers["location"] == address
    [moved] = commands(wire, "set_memory_mode")
    assert moved["scope"] == {"user_id": "ana", "project_id": "home"}
    assert moved["arguments"] == {"memory_ids": ["m1", "m2"], "mode": "journal"}


async def test_a_move_on_the_map_is_taken_back_by_mode(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        sent = {"memory_ids": "general= m1 m2 code= m3", "to": "journal"}
        moved = await http.post("/admin/map/move?user=ana", data=sent)
        wire.sent.clear()
        await undone(http, moved)
    back = [record["arguments"] for record in commands(wire, "set_memory_mode")]
    assert back == [{"memory_ids": ["m1", "m2"], "mode": "general"}, {"memory_ids": ["m3"], "mode": "code"}]


async def test_ticked_rows_move_without_a_script(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        sent = {"memory_ids": "", "memory_id": ["m1", "m3"], "to": "journal", "name": ""}
        answer = await http.post("/admin/map/move?user=ana&project=home", data=sent)
    assert "mode=" not in answer.headers["location"]
    assert [command["arguments"]["memory_ids"] for command in commands(wire, "set_memory_mode")] == [["m1", "m3"]]


async def test_a_mode_is_declared_before_memories_move_there(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        sent = {"memory_ids": "m1", "name": "kitchen", "embedder": "general", "description": "food"}
        await http.post("/admin/map/declare?user=ana", data=sent)
    assert [record["command"] for record in wire.records if "command" in record] == ["declare_mode", "set_memory_mode"]
    [declared] = commands(wire, "declare_mode")
    assert declared["arguments"] == {"name": "kitchen", "embedder": "general", "description": "food"}


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("move", {"to": "journal"}),
        ("move", {"memory_ids": "m1"}),
        ("declare", {"name": "kitchen", "embedder": "general"}),
        ("declare", {"memory_ids": "m1", "embedder": "general"}),
    ],
)
async def test_what_is_missing_is_named_and_nothing_is_changed(wire: FakeWire, path: str, sent: dict[str, str]) -> None:
    async with pages_over(MemoryService(wire)) as http:
        answer = await http.post(f"/admin/map/{path}?user=ana", data={**sent, "filler": "1"})
    assert answer.status_code == 422
    assert not commands(wire, "declare_mode")
    assert not commands(wire, "set_memory_mode")


async def test_suggestions_are_those_of_the_picked_mode(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        every, first = (await http.get(SUGGESTIONS)).text, (await http.get(SUGGESTIONS + "&mode=journal")).text
    assert NASTY not in every
    assert 'name="memory_ids" value="general= m1 m2"' in every
    assert "kitchen" in every
    assert "garden" in every
    assert "kitchen" not in first
    assert "garden" in first


async def test_other_users_and_readers_change_nothing(wire: FakeWire) -> None:
    reader = Caller("reader", "reader", grants=(Grant.model_validate({"user_id": "ana", "may": ["read"]}),))
    async with pages_over(MemoryService(wire), reader) as http:
        assert (await http.get(PAGE)).status_code == 200
        for path in (PAGE, POINTS, SUGGESTIONS):
            assert (await http.get(path.replace("ana", "ben"))).status_code == 403
        sent = {"memory_ids": "m1", "to": "journal", "name": "kitchen", "embedder": "general"}
        for path in ("move", "declare"):
            assert (await http.post(f"/admin/map/{path}?user=ana", data=sent)).status_code == 403
    assert not commands(wire, "declare_mode")
    assert not commands(wire, "set_memory_mode")


async def test_key_of_one_project_sees_its_map_and_is_told_to_pick_it(wire: FakeWire) -> None:
    of_one = Caller("one", "one", grants=(Grant.model_validate({"user_id": "ana", "project_id": "home"}),))
    async with pages_over(MemoryService(wire), of_one) as http:
        assert "Choose a project above" in (await http.get(PAGE)).text
        assert "Choose a project above" not in (await http.get(PAGE + "&project=home")).text
        assert (await http.get(SUGGESTIONS)).status_code == 200
        assert "kitchen" in (await http.get(SUGGESTIONS + "&project=home")).text
