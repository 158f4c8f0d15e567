"""Columns of one boundary: filters, neighbours, speakers, languages."""

from typing import Any

import numpy as np
from hypothesis import given, settings

from agents.rules.index.columns import MISSING
from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import Trait
from agents.rules.index.turn_order import TurnOrder
from agents.rules.text.languages import ENGLISH_INDEX, LANGUAGES, UNKNOWN_LANGUAGE
from schemas.models.vectors import MemoryFilter
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


def test_trait_round_trip() -> None:
    trait = Trait.of(made("x", speaker="Zoë 🎂", scope={"user_id": "ana", "project_id": 'a"b'}))
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
    assert (int(columns.labels[3]), int(columns.languages[3])) == (1 << 61, 2)
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
