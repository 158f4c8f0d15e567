"""Forgetting a user or a project: asked first, with the counts and the name, and refused to all other keys."""

from typing import Any

import pytest

from gateway.service.boundaries import Boundaries
from gateway.service.calls import Caller
from gateway.service.service import MemoryService
from schemas.state.policies import Grant
from tests.builders.boundaries import told
from tests.builders.records import Record, listed_memory
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over

USER = "/admin/forget?user=ana"
PROJECT = "/admin/forget?user=ana&project=home"
MEMORIES = "/admin/memories?user=ana"


@pytest.fixture
def wire() -> FakeWire:
    made = FakeWire()
    totals = {"memories": 41, "conversations": 6, "projects": 0}
    made.results["list.v1"] = lambda sent: {"items": [], "next": None, "total": totals[sent["what"]]}
    made.results["forget"] = {"forgotten": 48}
    return made


def forgotten(wire: FakeWire) -> list[Record]:
    return [record for record in wire.records if record.get("command") == "forget"]


@pytest.mark.parametrize(
    ("page", "name", "scope", "arguments"),
    [
        (USER, "ana", {"user_id": "ana"}, {"user": True}),
        (PROJECT, "home", {"user_id": "ana", "project_id": "home"}, {"project": True}),
    ],
)
async def test_all_goes_once_the_name_was_typed(
    wire: FakeWire, page: str, name: str, scope: dict[str, str], arguments: dict[str, Any]
) -> None:
    async with pages_over(MemoryService(wire)) as http:
        asked = (await http.get(page)).text
        for part in ("41 turns and summaries", "6 conversations", f"<strong>{name}</strong>"):
            assert part in asked, part
        for other in ("41", "Ana", ""):
            assert "Nothing was forgotten" in (await http.post(page, data={"typed": other})).text
        assert not forgotten(wire)
        done = await http.post(page, data={"typed": name})
    assert done.headers["location"] == "/admin?user=ana"
    [sent] = forgotten(wire)
    assert sent["scope"] == scope
    assert sent["arguments"] == arguments


async def test_counts_are_of_what_goes(wire: FakeWire) -> None:
    async with pages_over(MemoryService(wire)) as http:
        await http.get(PROJECT + "&mode=journal")
    [sent] = [record for record in wire.records if record.get("what") == "memories"]
    assert sent["scope"]["project_id"] == "home"
    assert sent["mode"] == "*"
    assert sent["include_superseded"] is True


@pytest.mark.parametrize(
    "grants",
    [
        (Grant.model_validate({"user_id": ["ana"], "may": ["read", "write"]}),),
        (
            Grant.model_validate({"user_id": ["ana"], "may": ["read"]}),
            Grant.model_validate({"user_id": ["ana"], "project_id": ["default"], "may": ["manage"]}),
        ),
    ],
)
async def test_a_user_is_forgotten_only_by_keys_that_manage_all(wire: FakeWire, grants: tuple[Grant, ...]) -> None:
    async with pages_over(MemoryService(wire), Caller("k", grants=grants)) as http:
        assert (await http.get(USER)).status_code == 403
        assert (await http.post(USER, data={"typed": "ana"})).status_code == 403
    async with pages_over(MemoryService(wire), Caller("k", own_user="ben")) as http:
        assert (await http.post(USER, data={"typed": "ana"})).status_code == 403
    assert not forgotten(wire)


async def test_the_way_there_is_on_the_pages_of_the_user_and_of_the_memories(wire: FakeWire) -> None:
    memories = {"items": [listed_memory("m1", "First")], "next": None, "total": 1}
    wire.results["list.v1"] = lambda sent: memories if sent["what"] == "memories" else {"items": [], "next": None}
    boundaries = Boundaries()
    told(boundaries, "ana")
    service = MemoryService(wire, boundaries=boundaries)
    async with pages_over(service) as http:
        assert "/admin/forget?user=ana" in (await http.get("/admin?user=ana")).text
        assert (
            "/admin/forget?user=ana&amp;project=home" in (await http.get("/admin/memories?user=ana&project=home")).text
        )
    grant = Grant.model_validate({"user_id": ["ana"], "project_id": ["home"]})
    async with pages_over(service, Caller("k", grants=(grant,))) as http:
        assert "/admin/forget" not in (await http.get(MEMORIES)).text
        assert (
            "/admin/forget?user=ana&amp;project=home" in (await http.get("/admin/memories?user=ana&project=home")).text
        )
