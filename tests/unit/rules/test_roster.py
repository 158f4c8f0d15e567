"""The columns of one boundary."""

from typing import Any

from agents.rules.roster import NOBODY, Roster, Row
from agents.rules.traits import Trait
from schemas.vectors import Where
from tests.made_memories import embedded_in, made

ANYTHING = Where(boundary="ana")


def rows_of(*memories: Any) -> tuple[list[Row], dict[int, Trait]]:
    traits: dict[Trait, int] = {}
    rows = [
        Row(
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


def roster_of(*memories: Any) -> Roster:
    return Roster(*rows_of(*memories))


def seen(roster: Roster, where: Where, **how: bool) -> list[int]:
    return roster.admitted(where, **how).nonzero()[0].tolist()


def test_a_trait_survives_its_textual_form() -> None:
    trait = Trait.of(made("x", speaker="Zoë 🎂", scope={"user_id": "ana", "project_id": 'a"b'}))
    assert Trait.loads(trait.dumps()) == trait


def test_filters_are_those_of_the_read() -> None:
    roster = roster_of(
        made("a", 0), made("b", 1, project="p1"), made("c", 2, type="semantic"), made("d", 3, mode="code")
    )
    assert seen(roster, ANYTHING) == [0, 1, 2, 3]
    assert seen(roster, Where("ana", {"user_id": ("ana",), "project_id": ("p1", "p2")})) == [1]
    assert seen(roster, Where("ana", {"user_id": ("ben",)})) == []
    assert seen(roster, Where("ana", types=("semantic",))) == [2]
    assert seen(roster, Where("ana", modes=("code", "journal"))) == [3]


def test_since_is_included_and_until_is_not() -> None:
    turns = [made("a", number) for number in range(4)]
    roster = roster_of(*turns)
    assert seen(roster, Where("ana", since_ms=turns[1].occurred_ms, until_ms=turns[3].occurred_ms)) == [1, 2]


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
    before, after = roster.beside()
    assert before[:7].tolist() == [4, NOBODY, NOBODY, NOBODY, 5, 1, NOBODY]
    assert after[:7].tolist() == [NOBODY, 5, NOBODY, NOBODY, 0, 4, NOBODY]


def test_a_superseded_turn_stands_beside_nobody() -> None:
    before, _ = roster_of(made("a", 0), made("b", 1, superseded_by="x"), made("c", 2)).beside()
    assert before[2] == 0


def test_what_is_written_later_is_seen_and_replaces() -> None:
    roster = roster_of(made("a", 0))
    roster.beside()
    rows, traits = rows_of(made("a", 0), made("b", 1))
    roster.write([rows[1]], {})
    roster.write([rows[0]._replace(superseded=True)], traits)
    assert seen(roster, ANYTHING) == [1]
    assert roster.documents == 2
    roster.write([rows[0]], {})
    assert roster.beside()[1][0] == 1


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
    roster = Roster([rows[0]._replace(number=20)], traits)
    assert roster.embedded("s1").nonzero()[0].tolist() == [20]
    assert roster.spoken_by(frozenset({"Ana"})).nonzero()[0].tolist() == [20]
    assert seen(roster, ANYTHING) == [20]
    assert roster.documents == 1


def test_an_empty_roster_sees_nothing() -> None:
    assert not roster_of().admitted(ANYTHING).any()
    assert not roster_of().embedded("s1").any()
    assert len(roster_of().beside()[0]) == 0
