"""Modes, categories, intention: what forms send over the wire, and what asks for a confirmation."""

import re
from typing import Any

import httpx
import pytest

from gateway.service.service import MemoryService
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over

MODE = {
    "name": "journal",
    "embedder": "general",
    "embedding_dim": 384,
    "description": "how I feel",
    "extraction_hints": "",
    "decay": "slow",
    "project": None,
}
TINY = {"name": "tiny", "dim": 32, "languages": "", "max_tokens": None, "megabytes": None}
COUNTS = {"eligible": 12, "ready": 10, "pending": 2, "stale": 0, "failed": 0}


@pytest.fixture
def service(wire: FakeWire) -> MemoryService:
    listed = {"modes": [MODE], "user_default": None, "project_default": None, "embedders": [TINY]}
    wire.results["list_modes"] = listed
    wire.results["health"] = {"modes": {"journal": COUNTS}}
    wire.results["list.v1"] = {"items": [{"scope": {"project_id": "p1"}}], "next": None, "total": 1}
    return MemoryService(wire)


def commands(wire: FakeWire) -> list[dict[str, Any]]:
    return [record for record in wire.records if record["schema"] == "command.v1"]


async def post(service: MemoryService, address: str, fields: dict[str, str]) -> httpx.Response:
    async with pages_over(service) as http:
        return await http.post(address, data=fields)


async def test_the_list_shows_counts_and_asks_again_while_vectors_are_made(service: MemoryService) -> None:
    async with pages_over(service) as http:
        page = (await http.get("/admin/modes?user=u1")).text
    assert "2 waiting" in page
    assert 'hx-get="/admin/modes/progress?user=u1"' in page


async def test_a_mode_is_declared_where_the_picker_says(service: MemoryService, wire: FakeWire) -> None:
    fields = {"name": "diary", "embedder": "tiny", "description": "evenings", "decay": "slow", "for_project": "1"}
    answer = await post(service, "/admin/modes?user=u1&project=p1", fields)
    assert answer.headers["location"] == "/admin/modes?user=u1&project=p1"
    [sent] = commands(wire)
    assert sent["command"] == "declare_mode"
    assert sent["scope"] == {"user_id": "u1", "project_id": "p1"}
    declared = {"name": "diary", "embedder": "tiny", "description": "evenings", "decay": "slow", "for_project": True}
    assert sent["arguments"] == {**declared, "searchable": True, "private": False}


async def test_a_mode_decays_by_type(service: MemoryService, wire: FakeWire) -> None:
    fields = {
        "name": "diary",
        "embedder": "tiny",
        "decay": "by_type",
        "decay_episodic": "fast",
        "decay_semantic": "none",
    }
    await post(service, "/admin/modes?user=u1", fields)
    assert commands(wire)[0]["arguments"]["decay"] == {"episodic": "fast", "semantic": "none"}


async def test_prompts_of_a_mode_are_sent_and_emptied_ones_removed(service: MemoryService, wire: FakeWire) -> None:
    fields = {
        "name": "diary",
        "embedder": "tiny",
        "prompts": "1",
        "prompt_distil": "One sentence.",
        "prompt_understand": " ",
    }
    await post(service, "/admin/modes?user=u1", fields)
    assert commands(wire)[0]["arguments"]["prompt_overrides"] == {"distil": "One sentence."}


async def test_the_form_of_a_mode_has_what_it_was_declared_with(service: MemoryService, wire: FakeWire) -> None:
    own = {"decay": {"episodic": "fast"}, "prompt_overrides": {"distil": "One sentence."}}
    listed = {"modes": [{**MODE, **own}], "embedders": [TINY], "user_default": None, "project_default": None}
    wire.results["list_modes"] = listed
    async with pages_over(service) as http:
        page = (await http.get("/admin/modes/one/journal?user=u1")).text
    chosen = re.findall(r'<option value="(\w+)" selected', page)
    assert chosen[:3] == ["by_type", "fast", "medium"]
    assert "One sentence.</textarea>" in page


async def test_a_mode_is_filtered_and_says_so(service: MemoryService, wire: FakeWire) -> None:
    await post(service, "/admin/modes?user=u1", {"name": "journal", "embedder": "tiny", "unsearchable": "1"})
    [sent] = commands(wire)
    assert sent["arguments"]["searchable"] is False
    assert sent["arguments"]["private"] is False
    listed = {"modes": [{**MODE, "searchable": False, "private": True}], "embedders": [TINY]}
    wire.results["list_modes"] = {**listed, "user_default": None, "project_default": None}
    async with pages_over(service) as http:
        table, page = (
            (await http.get("/admin/modes?user=u1")).text,
            (await http.get("/admin/modes/one/journal?user=u1")).text,
        )
    assert "not searchable" in table
    assert "private" in table
    assert re.findall(r'name="(\w+)" value="1" checked', page) == ["unsearchable", "private"]


async def test_a_renamed_mode_stays_picked(service: MemoryService, wire: FakeWire) -> None:
    answer = await post(service, "/admin/modes/one/journal/rename?user=u1&mode=journal", {"new_name": "diary"})
    assert answer.headers["location"] == "/admin/modes?user=u1&mode=diary"
    assert commands(wire)[0]["arguments"] == {"name": "journal", "new_name": "diary"}


async def test_a_mode_is_deleted_only_with_its_name(service: MemoryService, wire: FakeWire) -> None:
    refused = await post(service, "/admin/modes/one/journal/delete?user=u1", {"memories": "forget", "confirm": "yes"})
    assert refused.status_code == 422
    assert commands(wire) == []
    fields = {"memories": "move:general", "confirm": "journal"}
    assert (await post(service, "/admin/modes/one/journal/delete?user=u1", fields)).status_code == 303
    assert commands(wire)[0]["arguments"] == {"name": "journal", "memories": "move:general"}


async def test_a_mode_that_is_none_is_not_found(service: MemoryService) -> None:
    async with pages_over(service) as http:
        assert (await http.get("/admin/modes/one/nothing?user=u1")).status_code == 404


async def test_an_intention_is_set_by_lines(service: MemoryService, wire: FakeWire) -> None:
    await post(service, "/admin/intention?user=u1", {"goals": "ship it\n\n rest \n", "constraints": ""})
    [sent] = commands(wire)
    assert sent["scope"]["project_id"] == "p1"
    assert sent["arguments"] == {"goals": ["ship it", "rest"], "constraints": []}


async def test_a_wrong_decision_leads_to_where_it_is_forgotten(service: MemoryService, wire: FakeWire) -> None:
    said = {"text": "We use oak.", "source": "said", "since": "2026-03-01T09:30:00Z", "evidence": [], "item_id": "i1"}
    lists: dict[str, Any] = {
        name: [] for name in ("goals", "constraints", "blocking_errors", "open_questions", "resolved")
    }
    wire.results["get_intention"] = {**lists, "decisions": [said]}
    async with pages_over(service) as http:
        page = (await http.get("/admin/intention?user=u1&project=p1")).text
    assert '<a href="/admin/memories/i1/forget?user=u1&amp;project=p1">forget …</a>' in page


async def test_a_category_is_renamed(service: MemoryService, wire: FakeWire) -> None:
    await post(service, "/admin/categories/one/a%2Fb/rename?user=u1&project=p1", {"new_name": "c"})
    assert commands(wire)[0]["arguments"] == {"name": "a/b", "new_name": "c"}


async def test_a_page_of_one_project_asks_for_the_projects_once(service: MemoryService, wire: FakeWire) -> None:
    wire.results["list_categories"] = {"categories": [], "uncategorised": 0}
    async with pages_over(service) as http:
        assert "<option selected>p1</option>" in (await http.get("/admin/categories?user=u1")).text
    assert [record["what"] for record in wire.records if record["schema"] == "list.v1"] == ["projects"]


SUGGESTED = {
    "name": "oven-repair",
    "description": "oven, repair, door",
    "size": 12,
    "terms": ["oven", "repair", "door"],
    "examples": [{"memory_id": "m-1", "text": "The oven door was repaired."}],
    "memory_ids": ["m-1"],
    "in_mode": "journal",
}


async def test_groups_of_facts_without_a_category_are_suggested_when_asked(
    service: MemoryService, wire: FakeWire
) -> None:
    wire.results["list_categories"] = {"categories": [], "uncategorised": 12}
    wire.results["suggest_categories"] = {"suggestions": [SUGGESTED], "diff": [], "looked_at": 40}
    async with pages_over(service) as http:
        page = (await http.get("/admin/categories?user=u1&project=p1&suggest=1")).text
    assert "The oven door was repaired." in page
    assert 'value="oven, repair, door"' in page


async def test_categories_that_would_be_merged_or_split_are_said(service: MemoryService, wire: FakeWire) -> None:
    wire.results["list_categories"] = {"categories": [], "uncategorised": 0}
    diff = [
        {"op": "merge_categories", "before": {"ovens": 9, "stoves": 4}, "after": {"ovens": 13}},
        {"op": "split_category", "before": {"house": 9}, "after": {"roof": 5, "door": 4}, "into": []},
    ]
    wire.results["suggest_categories"] = {"suggestions": [], "diff": diff, "looked_at": 40}
    async with pages_over(service) as http:
        page = (await http.get("/admin/categories?user=u1&project=p1&suggest=1")).text
    assert "ovens and stoves are much alike" in page
    assert "house has groups of its own: roof (5 facts), door (4 facts)" in page


async def test_no_groups_are_searched_before_somebody_asks(service: MemoryService, wire: FakeWire) -> None:
    wire.results["list_categories"] = {"categories": [], "uncategorised": 12}
    async with pages_over(service) as http:
        page = (await http.get("/admin/categories?user=u1&project=p1")).text
    assert "Find suggestions" in page
    assert "suggest_categories" not in {sent["command"] for sent in commands(wire)}


async def test_suggested_modes_say_that_all_projects_were_searched(service: MemoryService, wire: FakeWire) -> None:
    suggestion = {**SUGGESTED, "nearest": None}
    wire.results["suggest_modes"] = {"suggestions": [suggestion], "looked_at": 40}
    async with pages_over(service) as http:
        page = (await http.get("/admin/modes?user=u1&project=p1&suggest=1")).text
    assert "40 turns of all projects that you may read were searched." in page
