"""What every table of categories promises (`agents.ports.categories.Categories`), and what the real one writes."""

import asyncio
import json
from collections.abc import Mapping

import faust
import pytest

from schemas.categories import Category, Taxonomy
from streams.flow.stores.tables import ScopeFields, Table
from streams.tables.category_table import CategoryTable
from tests.fakes.categories import FakeCategories

DEPLOYMENT = {"travel": "trips"}
HEALTH = Category(name="health", description="doctors", summary="Fit.", anchors=("a",), rests_on={"a": "h"}, size=4)
OWN = HEALTH.model_copy(update={"declared": True})


class Stores:
    """Stands where a Faust table keeps its partitions."""

    def __init__(self) -> None:
        self.shard: dict[bytes, bytes] = {}

    def _db_for_partition(self, _partition: int) -> dict[bytes, bytes]:
        return self.shard


def faust_table(monkeypatch: pytest.MonkeyPatch, deployment: Mapping[str, str]) -> CategoryTable:
    """The table over a dict in place of RocksDB."""
    table = CategoryTable(faust.App("test", broker="kafka://nowhere:1", store="memory://"), deployment)
    stores, kind = Stores(), type(table.table)
    monkeypatch.setattr(kind, "data", property(lambda _: stores), raising=False)
    monkeypatch.setattr(kind, "__setitem__", lambda _, key, value: stores.shard.__setitem__(key, value))
    return table


@pytest.fixture(params=["faust", "fake"])
def kept(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Table[ScopeFields, Taxonomy]:
    return faust_table(monkeypatch, DEPLOYMENT) if request.param == "faust" else FakeCategories(DEPLOYMENT)


def scope(user: str = "ana", project: str = "default") -> dict[str, str]:
    return {"user_id": user, "project_id": project}


def test_categories_are_read_in_their_scope_only(kept: Table[ScopeFields, Taxonomy]) -> None:
    kept.put(0, scope(), kept.get(0, scope()).with_categories(OWN))
    assert kept.get(0, scope()).find("health") == OWN
    for other in (scope("ben"), scope("ana", "p2"), scope("ana/default", "x")):
        assert kept.get(0, other).find("health") is None


def test_categories_of_the_deployment_are_in_every_scope(kept: Table[ScopeFields, Taxonomy]) -> None:
    kept.put(0, scope(), Taxonomy().with_categories(OWN))
    for one in (scope(), scope("ben")):
        travel = kept.get(0, one).find("travel")
        assert travel is not None
        assert (travel.description, travel.declared) == ("trips", False)


def test_category_that_left_the_deployment_is_gone(kept: Table[ScopeFields, Taxonomy]) -> None:
    kept.put(0, scope(), Taxonomy().with_categories(HEALTH))
    assert [one.name for one in kept.get(0, scope()).all()] == ["travel"]


def test_later_write_is_read_at_once(kept: Table[ScopeFields, Taxonomy]) -> None:
    for number in range(3):
        kept.put(0, scope(), Taxonomy().with_categories(OWN.model_copy(update={"size": number})))
        found = kept.get(0, scope()).find("health")
        assert found is not None
        assert found.size == number


def test_changelog_has_readable_json(monkeypatch: pytest.MonkeyPatch) -> None:
    table = faust_table(monkeypatch, {})
    table.put(0, scope("a/b", "50%"), Taxonomy().with_categories(OWN))
    [(key, value)] = table.table.data.shard.items()  # type: ignore[attr-defined]
    assert key == b"a%2Fb/50%25"
    assert json.loads(value)["categories"]["health"]["summary"] == "Fit."


async def test_pending_write_of_the_fake_waits_until_it_is_released() -> None:
    kept = FakeCategories()
    kept.held = True
    kept.put(0, scope(), Taxonomy())
    [writing] = [asyncio.ensure_future(one) for one in kept.pending_writes()]
    done, _ = await asyncio.wait([writing], timeout=0.01)
    assert not done
    kept.held = False
    await writing
    assert kept.pending_writes() == []
