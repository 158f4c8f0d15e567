"""The contract of category tables, and the stored form of the real one."""

import asyncio
import json
from collections.abc import Mapping

import faust
import pytest

from schemas.scopes import ScopeFields
from schemas.state.categories import Category, Taxonomy
from streams.flow.stores import ScopeStore, Table
from streams.tables.json_table import CategoryTable
from tests.fakes.tables.categories import FakeCategories
from tests.fakes.tables.table_store import dict_store

DEPLOYMENT = {"travel": "trips"}
HEALTH = Category(name="health", description="doctors", summary="Fit.", anchors=("a",), rests_on={"a": "h"}, size=4)
OWN = HEALTH.model_copy(update={"declared": True})


def faust_table(monkeypatch: pytest.MonkeyPatch, deployment: Mapping[str, str]) -> CategoryTable:
    """Create the real table over a dict in place of the database."""
    table = CategoryTable(faust.App("test", broker="kafka://nowhere:1", store="memory://"), deployment)
    dict_store(table.table, monkeypatch)
    return table


@pytest.fixture(params=["faust", "fake"])
def categories(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ScopeStore[Taxonomy]:
    return faust_table(monkeypatch, DEPLOYMENT) if request.param == "faust" else FakeCategories(DEPLOYMENT)


def scope(user: str = "ana", project: str = "default") -> dict[str, str]:
    return {"user_id": user, "project_id": project}


def test_categories_are_read_in_their_scope_only(categories: Table[ScopeFields, Taxonomy]) -> None:
    categories.put(0, scope(), categories.get(0, scope()).with_categories(OWN))
    assert categories.get(0, scope()).find("health") == OWN
    for other in (scope("ben"), scope("ana", "p2"), scope("ana/default", "x")):
        assert categories.get(0, other).find("health") is None


def test_categories_of_the_deployment_are_in_every_scope(categories: Table[ScopeFields, Taxonomy]) -> None:
    categories.put(0, scope(), Taxonomy().with_categories(OWN))
    for each in (scope(), scope("ben")):
        travel = categories.get(0, each).find("travel")
        assert travel is not None
        assert travel.description == "trips"
        assert not travel.declared


def test_category_removed_from_the_settings_disappears(categories: Table[ScopeFields, Taxonomy]) -> None:
    categories.put(0, scope(), Taxonomy().with_categories(HEALTH))
    assert [each.name for each in categories.get(0, scope()).all()] == ["travel"]


def test_later_write_is_visible_immediately(categories: Table[ScopeFields, Taxonomy]) -> None:
    for number in range(3):
        categories.put(0, scope(), Taxonomy().with_categories(OWN.model_copy(update={"size": number})))
        found = categories.get(0, scope()).find("health")
        assert found is not None
        assert found.size == number


def test_deleted_category_of_the_deployment_stays_away_in_its_scope(categories: Table[ScopeFields, Taxonomy]) -> None:
    categories.put(0, scope(), categories.get(0, scope()).without("travel", 7))
    assert categories.get(0, scope()).all() == []
    assert [each.name for each in categories.get(0, scope("ana", "p2")).all()] == ["travel"]


def test_scopes_with_a_row_are_listed_by_boundary(categories: ScopeStore[Taxonomy]) -> None:
    rows = [scope(), scope("ana", "p/2"), scope("ana/default", "x"), scope("ben")]
    for row in rows:
        categories.put(0, row, Taxonomy().with_categories(OWN))
    found = categories.scopes(0, "ana")
    assert len(found) == 2
    assert all(row in found for row in rows[:2])


def test_empty_taxonomy_leaves_no_row(categories: ScopeStore[Taxonomy]) -> None:
    for _ in range(2):
        categories.put(0, scope(), Taxonomy())
    categories.put(0, scope(), Taxonomy().with_categories(OWN))
    categories.put(0, scope(), Taxonomy())
    assert categories.scopes(0, "ana") == []
    assert [each.name for each in categories.get(0, scope()).all()] == ["travel"]


def test_changelog_has_readable_json(monkeypatch: pytest.MonkeyPatch) -> None:
    table = faust_table(monkeypatch, {})
    table.put(0, scope("a/b", "50%"), Taxonomy().with_categories(OWN))
    [(key, value)] = table.table.items()
    assert key == b"a%2Fb/50%25"
    assert json.loads(value)["categories"]["health"]["summary"] == "Fit."


async def test_pending_write_of_the_fake_waits_until_it_is_released() -> None:
    categories = FakeCategories()
    categories.held = True
    categories.put(0, scope(), Taxonomy().with_categories(OWN))
    [writing] = [asyncio.ensure_future(each) for each in categories.pending_writes()]
    done, _ = await asyncio.wait([writing], timeout=0.01)
    assert not done
    categories.held = False
    await writing
    assert categories.pending_writes() == []
