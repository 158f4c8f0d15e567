"""Numbers of the memories that a search has found: those of their ids, whatever is kept of the table of ids."""

import numpy as np
import pytest

from agents.rules.index.columns import MIN_FOUND_SHARE, ColumnArrays, DerivedColumns, TurnOrder, recency
from schemas.models.vectors import Nearest, Scored

IDS = [f"m{number}" for number in range(20)]
UNKNOWN = 24


@pytest.fixture
def number_of() -> dict[str, int]:
    return {memory_id: number for number, memory_id in enumerate(IDS)}


@pytest.fixture
def derived(number_of: dict[str, int]) -> DerivedColumns:
    columns = ColumnArrays.empty(UNKNOWN)
    return DerivedColumns(columns, TurnOrder.of(columns), number_of)


def nearest(table: list[str], *rows: int) -> Nearest:
    return Nearest(table, np.zeros(len(rows)), np.array(rows, np.int64))


def test_numbers_are_those_of_the_ids(derived: DerivedColumns) -> None:
    found = nearest(["m7", "gone", "m0", "m3"], 3, 1, 0)
    assert found.memory_ids == ["m3", "gone", "m7"]
    assert [derived.numbers_of(found).tolist() for _ in range(2)] == [[3, UNKNOWN, 7]] * 2


def test_kept_table_serves_other_questions(derived: DerivedColumns, number_of: dict[str, int]) -> None:
    table = ["m7", "m1", "m0", "m3"]
    derived.numbers_of(nearest(table, 3, 1))
    number_of.clear()
    assert derived.numbers_of(nearest(table, 0)).tolist() == [7]


def test_candidates_are_kept_beside_the_table(derived: DerivedColumns, number_of: dict[str, int]) -> None:
    table, candidates = ["m7", "m1", "m0", "m3"], ["m3", "m9"]
    derived.numbers_of(nearest(table, 3, 1))
    derived.keep_candidates(candidates, np.array([3, 9]))
    number_of.clear()
    assert derived.numbers_of(nearest(candidates, 1)).tolist() == [9]
    assert derived.numbers_of(nearest(table, 0)).tolist() == [7]
    assert derived.numbers_of(nearest(["m3", "m9"], 1)).tolist() == [UNKNOWN], "other ids than those that are kept"


def test_grown_table_and_another_one_are_read_anew(derived: DerivedColumns) -> None:
    table = ["m7", "m1"]
    derived.numbers_of(nearest(table, 0, 1))
    table.append("m2")
    assert derived.numbers_of(nearest(table, 2, 0)).tolist() == [2, 7]
    assert derived.numbers_of(nearest(["m5", "m6", "m7"], 2, 0)).tolist() == [7, 5]


def test_large_table_is_not_read_for_a_few(derived: DerivedColumns, number_of: dict[str, int]) -> None:
    few = nearest(IDS, *range(len(IDS) // MIN_FOUND_SHARE - 1))
    assert derived.numbers_of(few).tolist() == few.rows.tolist()
    number_of.clear()
    assert derived.numbers_of(few).tolist() == [UNKNOWN] * len(few)


def test_found_memories_are_a_sequence() -> None:
    found = Nearest(["b", "a", "c"], np.array([0.5, 0.25]), np.array([2, 0]))
    assert found == [Scored("c", 0.5), Scored("b", 0.25)]
    assert found[1:] == [Scored("b", 0.25)]
    assert found[0] == Scored("c", 0.5)
    assert Nearest.of(list(found)) == found


def test_recency_halves_at_the_half_life_and_is_smooth() -> None:
    ages = np.array([-5.0, 0.0, 10.0, 10.001, 1e9])
    values = recency(ages, np.full(5, 10.0))
    assert values[:3].tolist() == [1.0, 1.0, 0.5]
    assert 0 < values[2] - values[3] < 0.001
    assert 0 < values[4] < 0.001
    assert recency(ages, np.full(5, np.inf)).tolist() == [1.0] * 5
