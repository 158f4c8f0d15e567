"""What finds room in a context."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.rules.context.packing import ContextPacker, SizedMemory
from tests.builders.memories import made

sizes_of_turns = st.lists(st.integers(min_value=1, max_value=50), max_size=30)
rooms = st.integers(min_value=0, max_value=300)


def kept_of(sizes: list[int], room: int) -> list[int]:
    """The places of the turns that an unbroken section keeps; the newest turn comes first."""
    filling = ContextPacker(10_000)
    newest_first = [sized(len(sizes) - place, size) for place, size in enumerate(sizes)]
    filling.offer("recent_window", newest_first, room, contiguous=True)
    return [place for place, one in enumerate(newest_first) if filling.has(one.memory.memory_id)]


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
def test_the_newest_turns_are_kept(sizes: list[int], room: int, kept: list[int]) -> None:
    assert kept_of(sizes, room) == kept


@given(sizes_of_turns, rooms)
def test_no_older_turn_is_kept_where_a_newer_one_found_no_room(sizes: list[int], room: int) -> None:
    kept = kept_of(sizes, room)
    possible = [place for place, size in enumerate(sizes) if size <= room]
    assert sum(sizes[place] for place in kept) <= room
    assert kept == possible[: len(kept)]
    if len(kept) < len(possible):
        assert sum(sizes[place] for place in possible[: len(kept) + 1]) > room


def test_elsewhere_what_has_no_room_does_not_end_it() -> None:
    filling = ContextPacker(10)
    filling.offer("retrieved_evidence", [sized(3, 6), sized(2, 8), sized(1, 4)], 10)
    assert filling.sections()["retrieved_evidence"] == memory_ids(1, 3)


def sized(number: int, tokens: int) -> SizedMemory:
    memory = made(f"turn {number}", number)
    return SizedMemory(memory, memory.text, tokens)


def memory_ids(*numbers: int) -> list[str]:
    return [made("", number).memory_id for number in numbers]


def test_what_is_offered_first_has_room_first() -> None:
    filling = ContextPacker(10)
    filling.offer("retrieved_evidence", [sized(0, 6)], filling.left)
    filling.offer("recent_window", [sized(3, 3), sized(2, 3), sized(1, 3)], 100, contiguous=True)
    assert filling.sections()["retrieved_evidence"] == memory_ids(0)
    assert filling.sections()["recent_window"] == memory_ids(3)
    assert filling.tokens()["recent_window"] == 3
    assert filling.left == 1
    assert sorted(filling.dropped) == sorted(memory_ids(1, 2))


def test_a_section_keeps_to_its_own_room() -> None:
    filling = ContextPacker(100)
    filling.offer("recent_window", [sized(2, 3), sized(1, 3), sized(0, 3)], 7)
    assert filling.lines() == ["turn 1", "turn 2"]


def test_all_that_is_kept_stands_in_order_of_time() -> None:
    filling = ContextPacker(100)
    filling.offer("retrieved_evidence", [sized(5, 1), sized(1, 1)], 100)
    filling.offer("recent_window", [sized(6, 1), sized(3, 1)], 100)
    assert filling.lines() == ["turn 1", "turn 3", "turn 5", "turn 6"]
    assert filling.sections()["retrieved_evidence"] == memory_ids(1, 5)


def test_the_oldest_of_the_least_important_section_is_given_up_first() -> None:
    filling = ContextPacker(100)
    filling.offer("retrieved_evidence", [sized(1, 10)], 100)
    filling.offer("recent_window", [sized(6, 5), sized(3, 5)], 100)
    assert filling.drop_least_important()
    assert filling.drop_least_important()
    assert (filling.lines(), filling.left) == (["turn 1"], 90)
    assert filling.dropped == memory_ids(3, 6)
    assert filling.drop_least_important()
    assert not filling.drop_least_important()


def test_what_a_section_had_no_room_for_another_one_may_keep() -> None:
    filling = ContextPacker(10)
    filling.offer("rules", [sized(1, 5)], 4)
    assert (filling.dropped, filling.is_missing(memory_ids(1)[0])) == (memory_ids(1), True)
    filling.offer("retrieved_evidence", [sized(1, 5)], filling.left)
    assert (filling.dropped, filling.is_missing(memory_ids(1)[0])) == ([], False)


def test_what_says_the_same_again_is_dropped_and_not_missed() -> None:
    filling = ContextPacker(100)
    texts = [
        "The deploy target is fly.io since the first of March.",
        "The deploy target is fly.io since the first of March!",
    ]
    first, again = (SizedMemory(made(text, number), text, 5) for number, text in enumerate(texts))
    filling.offer("rules", [first, again], 100)
    assert filling.lines() == texts[:1]
    assert filling.dropped == [again.memory.memory_id]
    assert not filling.is_missing(again.memory.memory_id)
