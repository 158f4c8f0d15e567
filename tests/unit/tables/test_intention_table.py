"""The table of intentions: readable JSON by scope."""

import json

import faust
import pytest

from schemas.state.intention import Intention, IntentionEntry
from streams.tables import json_table
from streams.tables.json_table import IntentionTable, scope_from_key, scope_key
from tests.builders.memories import START
from tests.fakes.tables.table_store import dict_store

SAIL = Intention(version=3, goals=(IntentionEntry(text="learn to sail", source="set", at=START, offset=7),), set_at=7)


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> IntentionTable:
    table = IntentionTable(faust.App("test", broker="kafka://nowhere:1", store="memory://"))
    dict_store(table.table, monkeypatch)
    return table


def scope(user: str, project: str = "default") -> dict[str, str]:
    return {"user_id": user, "project_id": project}


def test_intention_is_read_back_and_defaults_to_an_empty_one(table: IntentionTable) -> None:
    table.put(0, scope("ana"), SAIL)
    assert table.get(0, scope("ana")) == SAIL
    assert table.get(0, scope("ana", "p2")) == Intention()


def test_changelog_has_json_under_the_values_of_the_scope(table: IntentionTable) -> None:
    table.put(0, scope("a/b", "50%"), SAIL)
    value = json.loads(table.table.read(0, "a%2Fb/50%25") or b"")
    assert value["goals"] == [{"text": "learn to sail", "source": "set", "at": "2026-02-01T10:00:00Z", "offset": 7}]
    assert value["version"] == 3
    assert "signs" not in value


def test_scopes_are_those_of_one_boundary(table: IntentionTable) -> None:
    for user, project in (("ana", "p1"), ("ana", "x/y"), ("ana-b", "p1"), ("an", "p1"), ("anab", "p1"), ("a", "na")):
        table.put(0, scope(user, project), SAIL)
    assert table.scopes(0, "ana") == [scope("ana", "p1"), scope("ana", "x/y")]
    assert table.scopes(0, "nobody") == []


@pytest.mark.parametrize("values", [("ana", "default"), ("a/b", "%2F"), ("ü é", "日本")])
def test_scope_is_restored_from_its_key(values: tuple[str, str]) -> None:
    assert scope_from_key(scope_key(scope(*values))) == scope(*values)


def test_value_of_another_worker_is_read(table: IntentionTable) -> None:
    table.put(0, scope("ana"), SAIL)
    later = SAIL.model_copy(update={"version": 9})
    table.table.write(0, "ana/default", later.model_dump_json().encode())
    assert table.get(0, scope("ana")) == later


def test_parsed_intentions_are_cached_up_to_a_limit(table: IntentionTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_table, "MAX_PARSED_INTENTIONS", 2)
    for number in range(5):
        table.put(0, scope(f"u{number}"), SAIL.model_copy(update={"version": number}))
        assert table.get(0, scope(f"u{number}")).version == number
        assert table.get(0, scope(f"u{number}")) is table.get(0, scope(f"u{number}"))
        assert len(table._recent) <= 2
