"""The times of memories before they were moved in time, for lists that have begun."""

from typing import Any

import numpy as np
import pytest

from agents.rules.index import memory_columns
from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import MemoryKind, Trait

TRAITS = {0: Trait(MemoryKind((("user_id", "ana"),), "general", "episodic", "medium"), "c1", None)}
NUMBERS = np.arange(3)


def row(number: int, occurred_ms: int) -> MemoryRow:
    return MemoryRow(number, f"m{number}", 0, occurred_ms, number, 1, 0.5, superseded=False, space=None)


def times(columns: MemoryColumns, changes: int) -> list[Any]:
    found: list[Any] = columns.times_at(NUMBERS, changes).tolist()
    return found


@pytest.fixture
def columns() -> MemoryColumns:
    return MemoryColumns([row(number, number * 10) for number in range(3)], TRAITS)


def test_times_are_those_after_so_many_changes(columns: MemoryColumns) -> None:
    began = columns.changes
    columns.write([row(1, 99)], {})
    between = columns.changes
    columns.write([row(1, 77), row(2, 20)], {})
    assert times(columns, began) == [0, 10, 20]
    assert times(columns, between) == [0, 99, 20]
    assert times(columns, columns.changes) == [0, 77, 20]
    assert columns.times_at(np.array([2]), began).tolist() == [20]
    assert columns.times_at(np.array([], np.int64), began).tolist() == []


def test_times_are_known_to_columns_that_are_read_again(columns: MemoryColumns) -> None:
    began = columns.changes
    columns.write([row(1, 99)], {})
    again = MemoryColumns([row(0, 0), row(1, 99), row(2, 20)], TRAITS, columns.history)
    assert times(again, began) == [0, 10, 20]
    assert times(again, columns.changes) == [0, 99, 20]
    again.write([row(2, 5)], {})
    assert times(again, columns.changes) == [0, 99, 20]


def test_latest_changes_are_remembered(columns: MemoryColumns, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_columns, "MAX_TIME_CHANGES", 1)
    bounded = MemoryColumns([row(number, number * 10) for number in range(3)], TRAITS)
    began = bounded.changes
    bounded.write([row(0, 8)], {})
    bounded.write([row(2, 9)], {})
    assert times(bounded, began) == [8, 10, 20]
