"""Conversations in stretches: turns that follow each other, and evenly less of them where there are many."""

from typing import Any

from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import Trait
from agents.rules.modes.segments import (
    MAX_SEGMENT_TURNS,
    chosen_segments_by_mode,
    default_segments_by_location,
    split_segments,
)
from schemas.memories import Memory, VectorLocation
from tests.builders.items import distilled_of
from tests.builders.memories import embedded_in, made


def cut(*memories: Memory, most: int = 100) -> list[list[str]]:
    """The texts of the stretches of one user's memories."""
    traits: dict[Trait, int] = {}
    rows = []
    for number, one in enumerate(memories):
        key = traits.setdefault(Trait.of(one), len(traits))
        superseded = one.superseded_by is not None
        rows.append(MemoryRow(number, one.memory_id, key, one.occurred_ms, one.source, 3, 0.5, superseded, None))
    roster = MemoryColumns(rows, {key: trait for trait, key in traits.items()})
    texts = {one.memory_id: one.text for one in memories}
    return [[texts[memory_id] for memory_id in stretch] for stretch in split_segments(roster, most)]


def turn(number: int, talk: str = "c1", **fields: Any) -> Memory:
    return made(f"{talk} {number}", number, conversation_id=talk, **fields)


def test_turns_of_a_conversation_follow_each_other_whatever_is_said_beside_it() -> None:
    turns = [turn(2), turn(1, "c2"), turn(0), turn(3, "c2")]
    assert sorted(cut(*turns)) == [["c1 0", "c1 2"], ["c2 1", "c2 3"]]


def test_a_long_conversation_is_cut_and_so_is_one_with_a_pause() -> None:
    long = [turn(number) for number in range(MAX_SEGMENT_TURNS + 1)]
    assert [len(stretch) for stretch in cut(*long)] == [MAX_SEGMENT_TURNS, 1]
    assert cut(turn(0), turn(1), turn(600)) == [["c1 0", "c1 1"], ["c1 600"]]


def test_what_was_superseded_or_distilled_is_in_no_stretch() -> None:
    said, gone = turn(0), turn(1, superseded_by="another")
    assert cut(said, gone, distilled_of(said, text="In short.")) == [["c1 0"]]


def test_of_many_stretches_some_are_left_out_evenly() -> None:
    turns = [turn(number, f"c{number}") for number in range(9)]
    assert cut(*turns, most=3) == [["c0 0"], ["c4 4"], ["c8 8"]]
    assert len(cut(*turns, most=9)) == 9
    assert cut() == []


def test_turns_are_told_apart_by_whether_somebody_chose_their_mode() -> None:
    ready = embedded_in("s1")
    chosen = turn(0, mode="code", mode_source="caller", embedding=ready)
    modelled = turn(1, mode="code", mode_source="model")
    fallen = [turn(2, embedding=ready), turn(3, mode_source="user_default", embedding=ready)]
    waiting = turn(4)
    stretch = [chosen, modelled, *fallen, waiting]
    assert chosen_segments_by_mode([stretch]) == {"code": [[chosen, modelled]]}
    assert default_segments_by_location([stretch]) == {VectorLocation(mode="general", space="s1"): [fallen]}
