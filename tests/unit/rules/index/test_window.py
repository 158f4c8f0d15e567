"""The recent window of a conversation."""

from typing import get_args

import pytest
from modestream_client.vocabulary import ContextFormat

from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import Trait
from agents.rules.index.window import MAX_REPORTED_TURNS, MAX_WINDOW_TURNS, MIN_ENTRY_TOKENS, estimate_turns, last_turns
from schemas.models.vectors import MemoryFilter
from tests.builders.memories import made


def memory_ids(*numbers: int) -> list[str]:
    return [made("", number).memory_id for number in numbers]


def store_of(count: int) -> MemoryColumns:
    turn = made("", 0)
    rows = [MemoryRow(n, made("", n).memory_id, 0, n, n, 3, 0.5, superseded=False, space=None) for n in range(count)]
    return MemoryColumns(rows, {0: Trait.of(turn)})


def test_window_is_the_end_of_a_conversation_and_bounded() -> None:
    store = store_of(MAX_REPORTED_TURNS + 100)
    anything = MemoryFilter("ana")
    assert last_turns(store, anything, "c1", 100) == memory_ids(*range(100, MAX_REPORTED_TURNS + 100))
    assert len(last_turns(store, anything, "c1", MAX_REPORTED_TURNS + 50)) == MAX_REPORTED_TURNS + 50


@pytest.mark.parametrize("name", get_args(ContextFormat))
def test_budget_holds_a_bounded_number_of_turns(name: ContextFormat) -> None:
    assert estimate_turns(10 * MIN_ENTRY_TOKENS[name], name) == 10
    assert estimate_turns(10**12, name) == MAX_WINDOW_TURNS


def test_no_conversation_has_no_window() -> None:
    assert last_turns(store_of(3), MemoryFilter("ana"), None, 100) == []
