"""Lists: filters and pages by address; a text filter looks at the latest part first."""

from typing import Any

import pytest
from modestream_client.failures import MemoryTimeout

from gateway.pages.requests import EXTRACTED_TYPES, MAX_TRAIL, list_fields, pager_of
from gateway.pages.text_search import MANY
from gateway.service.boundaries import Boundaries
from gateway.service.calls import Refused
from gateway.service.service import MemoryService
from tests.builders.boundaries import told
from tests.builders.records import listed_memory
from tests.fakes.wire import FakeWire
from tests.worlds.pages import pages_over

PAGE = "/admin/memories?user=u1&text=kent"


@pytest.fixture
def wire() -> FakeWire:
    return FakeWire()


@pytest.fixture
def service(wire: FakeWire) -> MemoryService:
    boundaries = Boundaries()
    told(boundaries, "u1", memories=MANY + 1)
    return MemoryService(wire, boundaries=boundaries)


def searches(wire: FakeWire) -> list[dict[str, Any]]:
    return [record for record in wire.records if record["schema"] == "list.v1" and "contains" in record]


async def test_a_part_that_fills_the_page_is_the_only_one_searched(wire: FakeWire, service: MemoryService) -> None:
    wire.results["list.v1"] = {"items": [listed_memory("m1", "in Kent")], "next": "more", "total": 60}
    async with pages_over(service) as http:
        page = (await http.get(PAGE)).text
    assert len(searches(wire)) == 1
    assert "facets" not in searches(wire)[0]
    assert "Search older memories" in page


async def test_without_a_match_everything_is_searched_once(wire: FakeWire, service: MemoryService) -> None:
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}
    async with pages_over(service) as http:
        page = (await http.get(PAGE)).text
    bounds = [(record.get("since"), record.get("until")) for record in searches(wire)]
    assert [until for _, until in bounds[1:]] == [since for since, _ in bounds[:-1]]
    assert bounds[-1][0] is None
    assert "Nothing matches" in page


async def test_a_search_that_takes_too_long_keeps_its_filters(wire: FakeWire, service: MemoryService) -> None:
    wire.results["list.v1"] = {"items": [], "next": None, "total": 0}

    def late(record: dict[str, Any]) -> dict[str, Any]:
        if "contains" in record:
            raise MemoryTimeout("late")
        return {"items": [], "next": None, "total": 0}

    wire.results["list.v1"] = late
    async with pages_over(service) as http:
        answer = await http.get(PAGE)
    assert answer.status_code == 200
    assert 'name="text" value="kent"' in answer.text


CONVERSATIONS = "/admin/conversations?user=u1&text=kent"


def conversation(name: str, first: str, last: str, turns: int = 1) -> dict[str, Any]:
    scope = {"user_id": "u1", "project_id": "home"}
    shown = {"conversation_id": name, "scope": scope, "turns": turns, "speakers": [], "modes": {"general": turns}}
    return {**shown, "first": f"2026-{first}T09:00:00Z", "last": f"2026-{last}T09:00:00Z"}


async def test_conversations_are_searched_in_parts_too(wire: FakeWire, service: MemoryService) -> None:
    listed = [conversation("c1", "02-27", "02-27")]
    wire.results["list.v1"] = {"items": listed, "next": "more", "total": 60}
    async with pages_over(service) as http:
        page = (await http.get(CONVERSATIONS)).text
    assert len(searches(wire)) == 1
    assert "Search older turns" in page


async def test_a_conversation_of_two_parts_is_one_row(wire: FakeWire, service: MemoryService) -> None:
    newer, older = conversation("c1", "03-03", "03-04", turns=40), conversation("c1", "03-01", "03-02", turns=2)

    def part(record: dict[str, Any]) -> dict[str, Any]:
        is_first, is_last = "until" not in record, "since" not in record
        items = ([newer] if is_first else [older] if is_last else []) if "contains" in record else []
        return {"items": items, "next": None, "total": len(items)}

    wire.results["list.v1"] = part
    async with pages_over(service) as http:
        page = (await http.get(CONVERSATIONS)).text
    assert page.count(">c1</a>") == 1
    assert '<td class="number">42' in page
    assert 'datetime="2026-03-01T09:00:00Z"' in page


def test_days_are_whole_and_the_last_one_is_included() -> None:
    fields = list_fields({"since": "2026-02-27", "until": "2026-02-28"})
    assert fields["since"] == "2026-02-27T00:00:00Z"
    assert fields["until"] == "2026-03-01T00:00:00Z"


def test_a_whole_time_stays_as_another_page_gave_it() -> None:
    assert list_fields({"since": "2026-02-27T09:30:00Z"})["since"] == "2026-02-27T09:30:00Z"


def test_all_extracted_types_are_one_choice() -> None:
    assert list_fields({"types": "items"})["types"] == list(EXTRACTED_TYPES)
    assert list_fields({"types": "semantic"})["types"] == ["semantic"]


@pytest.mark.parametrize(
    ("text", "values"), [("a=mail", ["mail"]), ("a=7", ["7", 7]), ("a= true ", ["true", True]), ("a=b=c", ["b=c"])]
)
def test_metadata_is_any_value_that_a_text_may_stand_for(text: str, values: list[object]) -> None:
    assert list_fields({"metadata": text})["filters"] == {"metadata": {"a": values}}


def test_metadata_without_a_name_is_refused() -> None:
    with pytest.raises(Refused, match="NAME=VALUE"):
        list_fields({"metadata": "mail"})


@pytest.mark.parametrize("limit", ["0", "501", "many", "9999999999999999999999"])
def test_a_page_has_a_bound(limit: str) -> None:
    with pytest.raises(Refused, match="rows"):
        list_fields({"limit": limit})


def test_links_lead_to_the_page_behind_and_back_again() -> None:
    first = pager_of({}, "c1")
    assert first.first is None
    assert first.previous is None
    assert first.next == {"cursor": "c1", "trail": "0"}
    third = pager_of({"cursor": "c2", "trail": "0.c1"}, None)
    assert third.next is None
    assert third.previous == {"cursor": "c1", "trail": "0"}
    assert pager_of({"cursor": "c1", "trail": "0"}, "c2").previous == {"cursor": None, "trail": None}


def test_the_way_back_is_bounded() -> None:
    query = {"cursor": "c99", "trail": ".".join(f"c{n}" for n in range(MAX_TRAIL))}
    following = pager_of(query, "c100").next
    assert following is not None
    assert following["trail"].split(".") == [*(f"c{n}" for n in range(1, MAX_TRAIL)), "c99"]
