"""Which turns find room in a context."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.rules.filling import Filling, Sized
from agents.rules.roster import Roster, Row
from agents.rules.traits import Trait
from agents.rules.window import FEWEST_TOKENS, MOST_TURNS, TURNS_NAMED, last_turns, newest_that_fit, turns_in
from schemas.vectors import Where
from tests.made_memories import made

sizes_of_turns = st.lists(st.integers(min_value=1, max_value=50), max_size=30)
rooms = st.integers(min_value=0, max_value=300)


@pytest.mark.parametrize(
    ("sizes", "room", "kept"),
    [
        ([], 10, []),
        ([4, 4, 4], 12, [0, 1, 2]),
        ([4, 4, 4], 11, [0, 1]),
        ([4, 8, 1], 10, [0]),
        ([11, 4, 4], 10, [1, 2]),
        ([4, 11, 4], 10, [0, 2]),
        ([1], 0, []),
    ],
    ids=["none", "all", "the oldest goes", "no gap", "too large for all", "too large in between", "no room"],
)
def test_the_newest_are_kept(sizes: list[int], room: int, kept: list[int]) -> None:
    assert newest_that_fit(sizes, room) == kept


@given(sizes_of_turns, rooms)
def test_no_older_turn_is_kept_where_a_newer_one_found_no_room(sizes: list[int], room: int) -> None:
    kept = newest_that_fit(sizes, room)
    possible = [place for place, size in enumerate(sizes) if size <= room]
    assert sum(sizes[place] for place in kept) <= room
    assert kept == possible[: len(kept)]
    if len(kept) < len(possible):
        assert sum(sizes[place] for place in possible[: len(kept) + 1]) > room


def sized(number: int, tokens: int) -> Sized:
    memory = made(f"turn {number}", number)
    return Sized(memory, memory.text, tokens)


def memory_ids(*numbers: int) -> list[str]:
    return [made("", number).memory_id for number in numbers]


def test_what_is_offered_first_has_room_first() -> None:
    filling = Filling(10)
    filling.offer("retrieved_evidence", [sized(0, 6)], filling.left)
    filling.offer("recent_window", [sized(3, 3), sized(2, 3), sized(1, 3)], 100)
    assert filling.sections()["retrieved_evidence"] == memory_ids(0)
    assert filling.sections()["recent_window"] == memory_ids(3)
    assert filling.tokens()["recent_window"] == 3
    assert filling.left == 1
    assert filling.dropped == memory_ids(1, 2)


def test_a_section_keeps_to_its_own_room() -> None:
    filling = Filling(100)
    filling.offer("recent_window", [sized(2, 3), sized(1, 3), sized(0, 3)], 7)
    assert filling.lines() == ["turn 1", "turn 2"]


def test_all_that_is_kept_stands_in_order_of_time() -> None:
    filling = Filling(100)
    filling.offer("retrieved_evidence", [sized(5, 1), sized(1, 1)], 100)
    filling.offer("recent_window", [sized(6, 1), sized(3, 1)], 100)
    assert filling.lines() == ["turn 1", "turn 3", "turn 5", "turn 6"]
    assert filling.sections()["retrieved_evidence"] == memory_ids(1, 5)


def test_the_oldest_of_the_least_important_section_is_given_up_first() -> None:
    filling = Filling(100)
    filling.offer("retrieved_evidence", [sized(1, 10)], 100)
    filling.offer("recent_window", [sized(6, 5), sized(3, 5)], 100)
    assert filling.give_up_one()
    assert filling.give_up_one()
    assert (filling.lines(), filling.left) == (["turn 1"], 90)
    assert filling.dropped == memory_ids(3, 6)
    assert filling.give_up_one()
    assert not filling.give_up_one()


def roster_of(count: int) -> Roster:
    turn = made("", 0)
    rows = [Row(n, made("", n).memory_id, 0, n, n, 3, 0.5, superseded=False, space=None) for n in range(count)]
    return Roster(rows, {0: Trait.of(turn)})


def test_a_long_conversation_is_looked_at_from_its_end_and_not_without_end() -> None:
    roster = roster_of(TURNS_NAMED + 100)
    anything = Where("ana")
    assert last_turns(roster, anything, "c1", 4000) == memory_ids(*range(100, TURNS_NAMED + 100))
    assert len(last_turns(roster, anything, "c1", (TURNS_NAMED + 50) * FEWEST_TOKENS)) == TURNS_NAMED + 50
    assert turns_in(10**12) == MOST_TURNS


def test_without_a_conversation_there_are_no_last_turns() -> None:
    assert last_turns(roster_of(3), Where("ana"), None, 4000) == []
