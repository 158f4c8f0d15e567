"""The contract of the table `interactions`, over the fake and the real one."""

import faust
import pytest

from schemas.state.interaction import InteractionCounts, WeekSample
from streams.flow.stores import InteractionStore
from streams.tables.json_table import InteractionTable
from tests.fakes.tables.interactions import FakeInteractions
from tests.fakes.tables.table_store import dict_store

COUNTS = InteractionCounts(latest=WeekSample(week=7, modes={"a": "TASK"}, corrected=("a",)))


@pytest.fixture(params=["faust", "fake"])
def table(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> InteractionStore:
    if request.param == "fake":
        return FakeInteractions()
    table = InteractionTable(faust.App("test", broker="kafka://nowhere:1", store="memory://"))
    dict_store(table._rows.table, monkeypatch)
    return table


def test_counts_are_read_back_in_their_partition(table: InteractionStore) -> None:
    assert table.get(1) == InteractionCounts()
    table.put(1, COUNTS)
    assert table.get(1) == COUNTS
    assert table.get(2) == InteractionCounts()


def test_later_counts_replace_earlier_ones(table: InteractionStore) -> None:
    table.put(1, COUNTS)
    later = InteractionCounts(latest=WeekSample(week=8))
    table.put(1, later)
    assert table.get(1) == later
