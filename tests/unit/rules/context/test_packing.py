from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modestream_client.vocabulary import ContextFormat

from agents.rules.context.formats import Entry
from agents.rules.context.packing import MAX_WINDOW_TURNS, MIN_ENTRY_TOKENS, ContextPacker, SizedEntry, estimate_turns
from agents.rules.text.overlap import ShingleIndex
from tests.builders.memories import made

sizes_of_turns = st.lists(st.integers(min_value=1, max_value=50), max_size=30)
rooms = st.integers(min_value=0, max_value=300)


def kept_of(sizes: list[int], room: int) -> list[int]:
    """Return the places of the turns that a contiguous section keeps, newest turn first."""
    packer = ContextPacker(10_000)
    newest_first = [sized(len(sizes) - place, size) for place, size in enumerate(sizes)]
    packer.offer("recent_window", newest_first, room, contiguous=True)
    return [place for place, candidate in enumerate(newest_first) if packer.has(candidate.memory.memory_id)]


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
def test_newest_turns_are_kept(sizes: list[int], room: int, kept: list[int]) -> None:
    assert kept_of(sizes, room) == kept


@given(sizes_of_turns, rooms)
def test_no_older_turn_is_kept_without_the_newer_ones(sizes: list[int], room: int) -> None:
    kept = kept_of(sizes, room)
    possible = [place for place, size in enumerate(sizes) if size <= room]
    assert sum(sizes[place] for place in kept) <= room
    assert kept == possible[: len(kept)]
    if len(kept) < len(possible):
        assert sum(sizes[place] for place in possible[: len(kept) + 1]) > room


def test_non_contiguous_section_skips_what_does_not_fit() -> None:
    packer = ContextPacker(10)
    packer.offer("retrieved_evidence", [sized(3, 6), sized(2, 8), sized(1, 4)], 10)
    assert packer.sections()["retrieved_evidence"] == memory_ids(1, 3)


def sized(number: int, tokens: int, day: str = "", day_tokens: int = 0) -> SizedEntry:
    return sized_text(f"turn {number}", number, tokens)._replace(day=day, day_tokens=day_tokens)


def sized_text(text: str, number: int, tokens: int) -> SizedEntry:
    memory = made(text, number)
    return SizedEntry(memory, Entry.of(memory), tokens)


def texts_of(packer: ContextPacker) -> list[str]:
    return [entry.text for entry in packer.entries()]


def memory_ids(*numbers: int) -> list[str]:
    return [made("", number).memory_id for number in numbers]


def test_earlier_offers_take_precedence() -> None:
    packer = ContextPacker(10)
    packer.offer("retrieved_evidence", [sized(0, 6)], packer.left)
    packer.offer("recent_window", [sized(3, 3), sized(2, 3), sized(1, 3)], 100, contiguous=True)
    assert packer.sections()["retrieved_evidence"] == memory_ids(0)
    assert packer.sections()["recent_window"] == memory_ids(3)
    assert packer.tokens()["recent_window"] == 3
    assert packer.left == 1
    assert sorted(packer.dropped) == sorted(memory_ids(1, 2))


def test_section_respects_its_room() -> None:
    packer = ContextPacker(100)
    packer.offer("recent_window", [sized(2, 3), sized(1, 3), sized(0, 3)], 7)
    assert texts_of(packer) == ["turn 1", "turn 2"]


def test_kept_memories_are_sorted_by_time() -> None:
    packer = ContextPacker(100)
    packer.offer("retrieved_evidence", [sized(5, 1), sized(1, 1)], 100)
    packer.offer("recent_window", [sized(6, 1), sized(3, 1)], 100)
    assert texts_of(packer) == ["turn 1", "turn 3", "turn 5", "turn 6"]
    assert packer.sections()["retrieved_evidence"] == memory_ids(1, 5)


def test_memory_kept_last_is_dropped_first() -> None:
    packer = ContextPacker(100)
    packer.offer("retrieved_evidence", [sized(1, 10)], 100)
    packer.offer("recent_window", [sized(6, 5), sized(3, 5)], 100)
    assert packer.drop_least_important()
    assert packer.drop_least_important()
    assert texts_of(packer) == ["turn 1"]
    assert packer.left == 90
    assert packer.dropped == memory_ids(3, 6)
    assert packer.drop_least_important()
    assert not packer.drop_least_important()


def test_memory_dropped_by_one_section_can_fit_another() -> None:
    packer = ContextPacker(10)
    packer.offer("rules", [sized(1, 5)], 4)
    assert packer.dropped == memory_ids(1)
    assert packer.is_missing(memory_ids(1)[0])
    packer.offer("retrieved_evidence", [sized(1, 5)], packer.left)
    assert packer.dropped == []
    assert not packer.is_missing(memory_ids(1)[0])


def test_near_duplicate_is_dropped_and_not_missing() -> None:
    packer = ContextPacker(100)
    texts = [
        "The deploy target is fly.io since the first of March.",
        "The deploy target is fly.io since the first of March!",
    ]
    first, again = (sized_text(text, number, 5) for number, text in enumerate(texts))
    packer.offer("rules", [first, again], 100)
    assert texts_of(packer) == texts[:1]
    assert packer.dropped == [again.memory.memory_id]
    assert not packer.is_missing(again.memory.memory_id)


def test_first_entry_of_a_day_pays_for_the_day() -> None:
    packer = ContextPacker(20)
    first, second, other = sized(1, 5, "a", 4), sized(2, 5, "a", 4), sized(3, 5, "b", 4)
    packer.offer("retrieved_evidence", [first, second, other], 20)
    assert packer.left == 6
    assert packer.dropped == [other.memory.memory_id]
    assert packer.drop_least_important()
    assert packer.left == 11
    assert packer.drop_least_important()
    assert packer.left == 20


def test_text_beside_the_kept_ones_is_compared_with_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    covers = ShingleIndex.covers

    def counting(index: ShingleIndex, text: str, since: int = 0) -> bool:
        compared.append(len(index) - since)
        return covers(index, text, since)

    monkeypatch.setattr(ShingleIndex, "covers", counting)
    packer = ContextPacker(10)
    packer.offer("rules", [sized(1, 2), sized(2, 2)], 4)
    packer.offer("recent_window", [sized(4, 2), sized(3, 5)], 6, contiguous=True)
    compared.clear()
    packer.offer("recent_window", [sized(3, 5)], 6, contiguous=True)
    packer.offer("recent_window", [sized(3, 5)], 6, contiguous=True)
    assert sum(compared) == 0


def test_longer_text_is_shown_only_where_there_is_room() -> None:
    packer = ContextPacker(20)
    packer.offer("retrieved_evidence", [sized(1, 5), sized(2, 5)], 20)
    packer.lengthen(sized_text("the whole text", 1, 16))
    assert texts_of(packer) == ["turn 1", "turn 2"]
    packer.lengthen(sized_text("the whole text", 1, 15))
    assert texts_of(packer) == ["the whole text", "turn 2"]
    assert packer.left == 0


@pytest.mark.parametrize("name", get_args(ContextFormat))
def test_budget_holds_a_bounded_number_of_turns(name: ContextFormat) -> None:
    assert estimate_turns(10 * MIN_ENTRY_TOKENS[name], name) == 10
    assert estimate_turns(10**12, name) == MAX_WINDOW_TURNS
