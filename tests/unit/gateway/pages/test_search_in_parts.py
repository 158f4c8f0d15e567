"""A text filter over many memories: the latest part first, and a way on where the time is up."""

from typing import Any

import pytest
from modestream_client.failures import MemoryTimeout

from gateway.pages.routes.memories import MANY
from gateway.service.boundaries import Boundaries
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
