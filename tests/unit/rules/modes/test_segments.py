"""Conversation segments: splitting, thinning, default and chosen modes."""

from typing import Any

from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import Trait
from agents.rules.modes.segments import (
    MAX_SEGMENT_TURNS,
    chosen_segments_by_mode,
    default_segments_by_location,
    split_segments,
)
from schemas.state.memories import Memory, VectorLocation
from tests.builders.items import distilled_of
from tests.builders.memories import embedded_in, made


def segment_texts(*memories: Memory, limit: int = 100) -> list[list[str]]:
    """The texts of the segments of one user's memories."""
    traits: dict[Trait, int] = {}
    rows = []
    for number, one in enumerate(memories):
        key = traits.setdefault(Trait.of(one), len(traits))
        superseded = one.superseded_by is not None
        rows.append(MemoryRow(number, one.memory_id, key, one.occurred_ms, one.source, 3, 0.5, superseded, None))
    columns = MemoryColumns(rows, {key: trait for trait, key in traits.items()})
    texts = {one.memory_id: one.text for one in memories}
    return [[texts[memory_id] for memory_id in segment] for segment in split_segments(columns, limit)]


def turn(number: int, conversation: str = "c1", **fields: Any) -> Memory:
    return made(f"{conversation} {number}", number, conversation_id=conversation, **fields)


def test_segments_separate_interleaved_conversations() -> None:
    turns = [turn(2), turn(1, "c2"), turn(0), turn(3, "c2")]
    assert sorted(segment_texts(*turns)) == [["c1 0", "c1 2"], ["c2 1", "c2 3"]]


def test_long_conversations_and_pauses_start_new_segments() -> None:
    long = [turn(number) for number in range(MAX_SEGMENT_TURNS + 1)]
    assert [len(segment) for segment in segment_texts(*long)] == [MAX_SEGMENT_TURNS, 1]
    assert segment_texts(turn(0), turn(1), turn(600)) == [["c1 0", "c1 1"], ["c1 600"]]


def test_superseded_and_distilled_memories_are_excluded() -> None:
    said, gone = turn(0), turn(1, superseded_by="another")
    assert segment_texts(said, gone, distilled_of(said, text="In short.")) == [["c1 0"]]


def test_segments_beyond_the_limit_are_thinned_evenly() -> None:
    turns = [turn(number, f"c{number}") for number in range(9)]
    assert segment_texts(*turns, limit=3) == [["c0 0"], ["c4 4"], ["c8 8"]]
    assert len(segment_texts(*turns, limit=9)) == 9
    assert segment_texts() == []


def test_default_and_chosen_modes_are_separated() -> None:
    ready = embedded_in("s1")
    chosen = turn(0, mode="code", mode_source="caller", embedding=ready)
    by_model = turn(1, mode="code", mode_source="model")
    defaulted = [turn(2, embedding=ready), turn(3, mode_source="user_default", embedding=ready)]
    waiting = turn(4)
    segment = [chosen, by_model, *defaulted, waiting]
    assert chosen_segments_by_mode([segment]) == {"code": [[chosen, by_model]]}
    assert default_segments_by_location([segment]) == {VectorLocation(mode="general", space="s1"): [defaulted]}
