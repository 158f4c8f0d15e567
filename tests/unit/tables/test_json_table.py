"""Tables of JSON values: modes and claims."""

from datetime import UTC, datetime

import faust
import pytest

from schemas.state.memories import Claim, ClaimEntry
from schemas.state.modes import Mode, ModeDeclarations, ModeUsage, UsageHistory
from streams.tables.json_table import ClaimTable, JsonTable, UsageTable
from tests.fakes.tables.table_store import dict_store


@pytest.fixture
def app() -> faust.App:
    return faust.App("test", broker="kafka://nowhere:1", store="memory://")


def mode_table(app: faust.App, monkeypatch: pytest.MonkeyPatch) -> JsonTable[str, ModeDeclarations]:
    table = JsonTable[str, ModeDeclarations](app, "modes", ModeDeclarations, key=str, max_parsed=2)
    dict_store(table.table, monkeypatch)
    return table


def test_declared_modes_are_read_back_and_default_to_general(monkeypatch: pytest.MonkeyPatch, app: faust.App) -> None:
    table = mode_table(app, monkeypatch)
    declared = ModeDeclarations(modes=(Mode(name="code", embedder="tiny", embedding_dim=32),), user_default="code")
    table.put(0, "ana", declared)
    assert table.get(0, "ana") == declared
    assert table.get(0, "ben") == ModeDeclarations()
    assert [mode.name for mode in table.get(0, "ben").visible(None)] == ["general"]
    table.put(0, "ana", ModeDeclarations())
    assert table.get(0, "ana") == ModeDeclarations()


def test_equal_values_share_a_bounded_cache_entry(monkeypatch: pytest.MonkeyPatch, app: faust.App) -> None:
    table = mode_table(app, monkeypatch)
    for number in range(5):
        user = f"u{number}"
        table.put(0, user, ModeDeclarations(user_default=user))
        assert table.get(0, user).user_default == user
        assert table.get(0, user) is table.get(0, user)
        assert len(table._parsed) <= 2


def test_empty_claim_is_stored_as_an_empty_value_or_not_at_all(monkeypatch: pytest.MonkeyPatch, app: faust.App) -> None:
    table = ClaimTable(app)
    store = dict_store(table.table, monkeypatch)
    table.put(0, "k", Claim())
    assert store == {}
    claim = Claim(held=(ClaimEntry(datetime(2026, 3, 1, tzinfo=UTC), 1, "m1"),))
    table.put(0, "k", claim)
    assert table.get(0, "k") == claim
    table.put(0, "k", Claim())
    assert store == {b"k": b""}
    assert table.get(0, "k") == Claim()


def test_empty_history_of_usage_is_no_row(monkeypatch: pytest.MonkeyPatch, app: faust.App) -> None:
    table = UsageTable(app)
    store = dict_store(table.table, monkeypatch)
    history = UsageHistory(weeks={7: {"code": ModeUsage(questions=2)}}, counted={"memory.retrieve": 4})
    table.put(0, "ana", history)
    assert table.get(0, "ana") == history
    table.put(0, "ana", UsageHistory())
    assert not store
