"""Columns of one boundary: filters, neighbours, speakers, languages."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from agents.rules.index import memory_columns
from agents.rules.index.columns import MISSING, TurnOrder
from agents.rules.index.memory_columns import (
    MAX_REPORTED_TURNS,
    MemoryColumns,
    MemoryKind,
    MemoryRow,
    Trait,
    last_turns,
)
from agents.rules.text.languages import ENGLISH_INDEX, LANGUAGES, UNKNOWN_LANGUAGE
from schemas.models.vectors import MemoryFilter
from schemas.state.memories import Memory
from tests.builders.memories import embedded_in, made
from tests.properties import SEEDS, scaled

ANYTHING = MemoryFilter(boundary="ana")


def rows_of(*memories: Any) -> tuple[list[MemoryRow], dict[int, Trait]]:
    traits: dict[Trait, int] = {}
    rows = [
        MemoryRow(
            number,
            memory.memory_id,
            traits.setdefault(Trait.of(memory), len(traits)),
            memory.occurred_ms,
            memory.source,
            3,
            0.5,
            memory.superseded_by is not None,
            memory.embedding.space,
        )
        for number, memory in enumerate(memories)
    ]
    return rows, {key: trait for trait, key in traits.items()}


def store_of(*memories: Any) -> MemoryColumns:
    return MemoryColumns(*rows_of(*memories))


def admitted(store: MemoryColumns, where: MemoryFilter, **how: bool) -> list[int]:
    return store.admitted(where, **how).nonzero()[0].tolist()


@pytest.mark.parametrize("items_apart", [False, True])
def test_trait_round_trip(items_apart: bool) -> None:
    scope = {"user_id": "ana", "project_id": 'a"b'}
    trait = Trait.of(made("x", speaker="Zoë 🎂", scope=scope, items_apart=items_apart))
    assert Trait.loads(trait.dumps()) == trait


def test_admitted_applies_the_filters_of_the_read() -> None:
    store = store_of(made("a", 0), made("b", 1, project="p1"), made("c", 2, type="semantic"), made("d", 3, mode="code"))
    assert admitted(store, ANYTHING) == [0, 1, 2, 3]
    assert admitted(store, MemoryFilter("ana", {"user_id": ("ana",), "project_id": ("p1", "p2")})) == [1]
    assert admitted(store, MemoryFilter("ana", {"user_id": ("ben",)})) == []
    assert admitted(store, MemoryFilter("ana", types=("semantic",))) == [2]
    assert admitted(store, MemoryFilter("ana", modes=("code", "journal"))) == [3]


def test_since_is_included_and_until_is_not() -> None:
    turns = [made("a", number) for number in range(4)]
    store = store_of(*turns)
    assert admitted(store, MemoryFilter("ana", since_ms=turns[1].occurred_ms, until_ms=turns[3].occurred_ms)) == [1, 2]


def test_superseded_memories_are_admitted_on_demand_only() -> None:
    store = store_of(made("a", 0, superseded_by="b"), made("b", 1))
    assert admitted(store, ANYTHING) == [1]
    assert admitted(store, ANYTHING, include_superseded=True) == [0, 1]


def test_neighbours_are_ordered_by_time_then_arrival() -> None:
    same_time = made("", 1).occurred_at
    store = store_of(
        made("third", 3),
        made("first", 0),
        made("other conversation", 2, conversation_id="c2"),
        made("other project", 1, project="p2"),
        made("second", 2, occurred_at=same_time, source=9),
        made("before second", 4, occurred_at=same_time, source=8),
        made("distilled", 2, type="semantic"),
    )
    order = store.order()
    assert order.before[:7].tolist() == [4, MISSING, MISSING, MISSING, 5, 1, MISSING]
    assert order.after[:7].tolist() == [MISSING, 5, MISSING, MISSING, 0, 4, MISSING]


def test_superseded_turn_has_no_neighbours() -> None:
    store = store_of(made("a", 0), made("b", 1, superseded_by="x"), made("c", 2))
    assert store.order().before[2] == 0


def test_later_writes_add_and_replace() -> None:
    store = store_of(made("a", 0))
    store.order()
    rows, traits = rows_of(made("a", 0), made("b", 1))
    store.write([rows[1]], {})
    store.write([rows[0]._replace(superseded=True)], traits)
    assert admitted(store, ANYTHING) == [1]
    assert store.documents == 2
    store.write([rows[0]], {})
    assert store.order().after[0] == 1


def test_speakers_and_vector_spaces() -> None:
    ready = embedded_in("s1")
    store = store_of(made("a", 0, speaker="Ana", embedding=ready), made("b", 1, speaker="Ben"), made("c", 2))
    assert set(store.speakers) == {"Ana", "Ben"}
    assert store.spoken_by(frozenset({"Ben"})).nonzero()[0].tolist() == [1]
    assert not store.spoken_by(frozenset()).any()
    assert store.embedded("s1").nonzero()[0].tolist() == [0]
    assert not store.embedded("s2").any()


def test_stale_vector_does_not_count() -> None:
    stale = embedded_in("s1", status="stale")
    assert not store_of(made("a", 0, embedding=stale)).embedded("s1").any()


def test_empty_rows_match_nothing() -> None:
    ready = embedded_in("s1")
    rows, traits = rows_of(made("a", 0, speaker="Ana", embedding=ready))
    store = MemoryColumns([rows[0]._replace(number=20)], traits)
    assert store.embedded("s1").nonzero()[0].tolist() == [20]
    assert store.spoken_by(frozenset({"Ana"})).nonzero()[0].tolist() == [20]
    assert admitted(store, ANYTHING) == [20]
    assert store.documents == 1


def test_languages_below_a_tenth_of_memories_are_ignored() -> None:
    german, french = LANGUAGES.index("german"), LANGUAGES.index("french")
    rows, traits = rows_of(*(made("a", number) for number in range(40)))
    spoken = [german] * 20 + [ENGLISH_INDEX] * 9 + [french] + [UNKNOWN_LANGUAGE] * 10
    store = MemoryColumns([row._replace(language=language) for row, language in zip(rows, spoken, strict=True)], traits)
    assert store.languages() == [german, ENGLISH_INDEX]
    assert MemoryColumns().languages() == [ENGLISH_INDEX]
    assert store_of(made("a")).languages() == [ENGLISH_INDEX]


def test_labels_and_language_are_stored() -> None:
    rows, traits = rows_of(made("a"))
    columns = MemoryColumns([rows[0]._replace(number=3, labels=1 << 61, language=2)], traits).columns
    assert int(columns.labels[3]) == 1 << 61
    assert int(columns.languages[3]) == 2
    assert columns.labels[0] == 0


@settings(max_examples=scaled(5))
@given(seed=SEEDS)
def test_incremental_turn_order_equals_a_full_rebuild(seed: int) -> None:
    rng = np.random.default_rng(seed)
    store, written = MemoryColumns(), {}
    for step in range(400):
        number = int(rng.integers(step // 3 + 1)) if rng.random() < 0.4 else step
        source = int(rng.integers(20)) if rng.random() < 0.1 else step
        memory = made(
            "a",
            number,
            conversation_id=f"c{number % 3}",
            type="semantic" if number % 11 == 0 else "episodic",
            source=source,
            occurred_at=made("", source // 2).occurred_at,
            superseded_by="x" if rng.random() < 0.05 else None,
        )
        [row], traits = rows_of(memory)
        key = number % 3 + 3 * (number % 11 == 0)
        store.write([row._replace(number=number, trait=key)], {key: traits[row.trait]})
        written[number] = (memory, row._replace(number=number, trait=key))
        if step % 3 == 0:
            incremental = store.order()
            rebuilt = TurnOrder.of(store.columns)
            for name in ("before", "after", "positions"):
                assert getattr(incremental, name).tolist() == getattr(rebuilt, name).tolist()
            assert incremental.last_turns == rebuilt.last_turns


def test_appending_a_turn_keeps_the_order() -> None:
    rows, traits = rows_of(*(made("a", number) for number in range(30)))
    store = MemoryColumns(rows[:3], traits)
    order = store.order()
    store.write([rows[3]], {})
    store.write([rows[3]._replace(space="s1")], {})
    store.write(rows[4:], {})
    assert store.order() is order
    assert order.positions[:30].tolist() == list(range(30))
    store.write([rows[2]._replace(superseded=True)], {})
    assert store.order() is not order
    assert store.order().positions[:4].tolist() == [0, 1, MISSING, 2]


def test_empty_columns_admit_nothing() -> None:
    assert not store_of().admitted(ANYTHING).any()
    assert not store_of().embedded("s1").any()
    assert len(store_of().order().before) == 0


def test_derived_values_are_kept_until_a_write() -> None:
    rows, traits = rows_of(*(made("a", number, conversation_id=f"c{number % 2}") for number in range(4)))
    store = MemoryColumns(rows[:3], traits)
    before = store.derived()
    assert before.conversation_lengths.tolist() == [6, 3]
    assert before.last_positions.tolist() == [1, 0, 0]
    assert store.derived() is before
    store.write([rows[3]], {})
    after = store.derived()
    assert after.conversation_lengths.tolist() == [6, 6]
    assert after.last_positions.tolist() == [1, 1, 0]
    assert after.neighbourhood_lengths[:4].tolist() == [6, 6, 6, 6]
    assert after.time_range_ms == (rows[0].occurred_ms, rows[3].occurred_ms)


def store_of_turns(*memories: Memory) -> MemoryColumns:
    traits: dict[Trait, int] = {}
    rows = [
        MemoryRow(
            number=number,
            memory_id=memory.memory_id,
            trait=traits.setdefault(Trait.of(memory), len(traits)),
            occurred_ms=memory.occurred_ms,
            source=memory.source,
            length=3,
            importance=0.5,
            superseded=memory.superseded_by is not None,
            space=None,
        )
        for number, memory in enumerate(memories)
    ]
    return MemoryColumns(rows, {key: trait for trait, key in traits.items()})


def ids(*memories: Memory) -> list[str]:
    return [memory.memory_id for memory in memories]


def test_latest_turns_come_oldest_first() -> None:
    turns = [made("a", number) for number in range(5)]
    store = store_of_turns(turns[3], turns[0], turns[4], turns[2], turns[1])
    assert store.latest(ANYTHING, "c1", 3) == ids(*turns[2:])
    assert store.latest(ANYTHING, "c1", 9) == ids(*turns)


def test_turns_of_one_time_are_ordered_by_arrival() -> None:
    time = made("", 0).occurred_at
    turns = [made("a", number, occurred_at=time, source=source) for number, source in enumerate((9, 7, 8))]
    assert store_of_turns(*turns).latest(ANYTHING, "c1", 2) == ids(turns[2], turns[0])


def test_latest_of_an_unknown_conversation_is_empty() -> None:
    store = store_of_turns(made("a"))
    assert store.latest(ANYTHING, "c1", 0) == []
    assert store.latest(ANYTHING, "unknown", 5) == []
    assert MemoryColumns().latest(ANYTHING, "c1", 5) == []


def test_other_conversations_superseded_and_distilled_are_excluded() -> None:
    kept = made("kept", 0)
    store = store_of_turns(
        kept,
        made("elsewhere", 1, conversation_id="c2"),
        made("replaced", 2, superseded_by="x"),
        made("distilled", 3, type="semantic"),
    )
    assert store.latest(ANYTHING, "c1", 5) == ids(kept)


def test_same_conversation_name_in_several_projects_follows_the_filter() -> None:
    here, there = made("here", 1, project="p1"), made("there", 0, project="p2")
    store = store_of_turns(here, there)
    assert store.latest(MemoryFilter("ana", {"project_id": ("p1",)}), "c1", 5) == ids(here)
    assert store.latest(MemoryFilter("ana", {"project_id": ("p2",)}), "c1", 5) == ids(there)
    assert store.latest(MemoryFilter("ana", {"project_id": None}), "c1", 5) == ids(there, here)


def test_empty_row_is_no_turn() -> None:
    [turn] = [made("a")]
    trait = Trait.of(turn)
    row = MemoryRow(30, turn.memory_id, 0, turn.occurred_ms, turn.source, 3, 0.5, superseded=False, space=None)
    assert MemoryColumns([row], {0: trait}).latest(ANYTHING, "c1", 9) == ids(turn)


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


def memory_ids(*numbers: int) -> list[str]:
    return [made("", number).memory_id for number in numbers]


def store_with_window(count: int) -> MemoryColumns:
    turn = made("", 0)
    rows = [MemoryRow(n, made("", n).memory_id, 0, n, n, 3, 0.5, superseded=False, space=None) for n in range(count)]
    return MemoryColumns(rows, {0: Trait.of(turn)})


def test_window_is_the_end_of_a_conversation_and_bounded() -> None:
    store = store_with_window(MAX_REPORTED_TURNS + 100)
    anything = MemoryFilter("ana")
    assert last_turns(store, anything, "c1", 100) == memory_ids(*range(100, MAX_REPORTED_TURNS + 100))
    assert len(last_turns(store, anything, "c1", MAX_REPORTED_TURNS + 50)) == MAX_REPORTED_TURNS + 50


def test_no_conversation_has_no_window() -> None:
    assert last_turns(store_with_window(3), MemoryFilter("ana"), None, 100) == []
