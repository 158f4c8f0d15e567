"""The columns of one boundary."""

from typing import Any

import numpy as np

from agents.rules.index.columns import MISSING
from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import Trait
from agents.rules.index.turn_order import TurnOrder
from agents.rules.text.languages import ENGLISH_INDEX, LANGUAGES, UNKNOWN_LANGUAGE
from schemas.vectors import MemoryFilter
from tests.builders.memories import embedded_in, made

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


def roster_of(*memories: Any) -> MemoryColumns:
    return MemoryColumns(*rows_of(*memories))


def seen(roster: MemoryColumns, where: MemoryFilter, **how: bool) -> list[int]:
    return roster.admitted(where, **how).nonzero()[0].tolist()


def test_a_trait_survives_its_textual_form() -> None:
    trait = Trait.of(made("x", speaker="Zoë 🎂", scope={"user_id": "ana", "project_id": 'a"b'}))
    assert Trait.loads(trait.dumps()) == trait


def test_filters_are_those_of_the_read() -> None:
    roster = roster_of(
        made("a", 0), made("b", 1, project="p1"), made("c", 2, type="semantic"), made("d", 3, mode="code")
    )
    assert seen(roster, ANYTHING) == [0, 1, 2, 3]
    assert seen(roster, MemoryFilter("ana", {"user_id": ("ana",), "project_id": ("p1", "p2")})) == [1]
    assert seen(roster, MemoryFilter("ana", {"user_id": ("ben",)})) == []
    assert seen(roster, MemoryFilter("ana", types=("semantic",))) == [2]
    assert seen(roster, MemoryFilter("ana", modes=("code", "journal"))) == [3]


def test_since_is_included_and_until_is_not() -> None:
    turns = [made("a", number) for number in range(4)]
    roster = roster_of(*turns)
    assert seen(roster, MemoryFilter("ana", since_ms=turns[1].occurred_ms, until_ms=turns[3].occurred_ms)) == [1, 2]


def test_superseded_memories_are_seen_on_demand_only() -> None:
    roster = roster_of(made("a", 0, superseded_by="b"), made("b", 1))
    assert seen(roster, ANYTHING) == [1]
    assert seen(roster, ANYTHING, include_superseded=True) == [0, 1]


def test_turns_stand_beside_those_of_their_conversation_in_order_of_time_then_arrival() -> None:
    same_time = made("", 1).occurred_at
    roster = roster_of(
        made("third", 3),
        made("first", 0),
        made("other conversation", 2, conversation_id="c2"),
        made("other project", 1, project="p2"),
        made("second", 2, occurred_at=same_time, source=9),
        made("before second", 4, occurred_at=same_time, source=8),
        made("distilled", 2, type="semantic"),
    )
    order = roster.order()
    assert order.before[:7].tolist() == [4, MISSING, MISSING, MISSING, 5, 1, MISSING]
    assert order.after[:7].tolist() == [MISSING, 5, MISSING, MISSING, 0, 4, MISSING]


def test_a_superseded_turn_stands_beside_nobody() -> None:
    roster = roster_of(made("a", 0), made("b", 1, superseded_by="x"), made("c", 2))
    assert roster.order().before[2] == 0


def test_what_is_written_later_is_seen_and_replaces() -> None:
    roster = roster_of(made("a", 0))
    roster.order()
    rows, traits = rows_of(made("a", 0), made("b", 1))
    roster.write([rows[1]], {})
    roster.write([rows[0]._replace(superseded=True)], traits)
    assert seen(roster, ANYTHING) == [1]
    assert roster.documents == 2
    roster.write([rows[0]], {})
    assert roster.order().after[0] == 1


def test_speakers_and_vector_spaces() -> None:
    ready = embedded_in("s1")
    roster = roster_of(made("a", 0, speaker="Ana", embedding=ready), made("b", 1, speaker="Ben"), made("c", 2))
    assert set(roster.speakers) == {"Ana", "Ben"}
    assert roster.spoken_by(frozenset({"Ben"})).nonzero()[0].tolist() == [1]
    assert not roster.spoken_by(frozenset()).any()
    assert roster.embedded("s1").nonzero()[0].tolist() == [0]
    assert not roster.embedded("s2").any()


def test_a_vector_that_is_not_todays_is_no_vector() -> None:
    stale = embedded_in("s1", status="stale")
    assert not roster_of(made("a", 0, embedding=stale)).embedded("s1").any()


def test_holes_belong_to_nobody() -> None:
    ready = embedded_in("s1")
    rows, traits = rows_of(made("a", 0, speaker="Ana", embedding=ready))
    roster = MemoryColumns([rows[0]._replace(number=20)], traits)
    assert roster.embedded("s1").nonzero()[0].tolist() == [20]
    assert roster.spoken_by(frozenset({"Ana"})).nonzero()[0].tolist() == [20]
    assert seen(roster, ANYTHING) == [20]
    assert roster.documents == 1


def test_languages_are_those_of_a_tenth_of_the_memories_or_more() -> None:
    german, french = LANGUAGES.index("german"), LANGUAGES.index("french")
    rows, traits = rows_of(*(made("a", number) for number in range(40)))
    spoken = [german] * 20 + [ENGLISH_INDEX] * 9 + [french] + [UNKNOWN_LANGUAGE] * 10
    roster = MemoryColumns([row._replace(language=place) for row, place in zip(rows, spoken, strict=True)], traits)
    assert roster.languages() == [german, ENGLISH_INDEX]
    assert MemoryColumns().languages() == [ENGLISH_INDEX]
    assert roster_of(made("a")).languages() == [ENGLISH_INDEX]


def test_marks_and_language_stand_in_their_columns() -> None:
    rows, traits = rows_of(made("a"))
    columns = MemoryColumns([rows[0]._replace(number=3, labels=1 << 61, language=2)], traits).columns
    assert (int(columns.labels[3]), int(columns.languages[3])) == (1 << 61, 2)
    assert columns.labels[0] == 0


def test_the_order_of_turns_that_was_followed_is_the_one_found_anew() -> None:
    rng = np.random.default_rng(7)
    roster, written = MemoryColumns(), {}
    for step in range(400):
        number = int(rng.integers(step // 3 + 1)) if rng.random() < 0.4 else step
        late = int(rng.integers(20)) if rng.random() < 0.1 else step
        memory = made(
            "a",
            number,
            conversation_id=f"c{number % 3}",
            type="semantic" if number % 11 == 0 else "episodic",
            source=late,
            occurred_at=made("", late // 2).occurred_at,
            superseded_by="x" if rng.random() < 0.05 else None,
        )
        [row], traits = rows_of(memory)
        key = number % 3 + 3 * (number % 11 == 0)
        roster.write([row._replace(number=number, trait=key)], {key: traits[row.trait]})
        written[number] = (memory, row._replace(number=number, trait=key))
        if step % 3 == 0:
            followed = roster.order()
            anew = TurnOrder.of(roster.columns)
            for name in ("before", "after", "positions"):
                assert getattr(followed, name).tolist() == getattr(anew, name).tolist()
            assert followed.lasts == anew.lasts


def test_a_turn_at_the_end_of_its_conversation_does_not_make_the_order_be_found_anew() -> None:
    rows, traits = rows_of(*(made("a", number) for number in range(30)))
    roster = MemoryColumns(rows[:3], traits)
    order = roster.order()
    roster.write([rows[3]], {})
    roster.write([rows[3]._replace(space="s1")], {})
    roster.write(rows[4:], {})
    assert roster.order() is order
    assert order.positions[:30].tolist() == list(range(30))
    roster.write([rows[2]._replace(superseded=True)], {})
    assert roster.order() is not order
    assert roster.order().positions[:4].tolist() == [0, 1, MISSING, 2]


def test_an_empty_roster_sees_nothing() -> None:
    assert not roster_of().admitted(ANYTHING).any()
    assert not roster_of().embedded("s1").any()
    assert len(roster_of().order().before) == 0
