"""The last turns of a conversation, from the columns of its boundary."""

from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import Trait
from schemas.memories import Memory
from schemas.vectors import MemoryFilter
from tests.builders.memories import made

ANYTHING = MemoryFilter(boundary="ana")


def roster_of(*memories: Memory) -> MemoryColumns:
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


def test_the_latest_turns_of_a_conversation_come_oldest_first() -> None:
    turns = [made("a", number) for number in range(5)]
    roster = roster_of(turns[3], turns[0], turns[4], turns[2], turns[1])
    assert roster.latest(ANYTHING, "c1", 3) == ids(*turns[2:])
    assert roster.latest(ANYTHING, "c1", 9) == ids(*turns)


def test_turns_of_the_same_time_come_in_order_of_arrival() -> None:
    time = made("", 0).occurred_at
    turns = [made("a", number, occurred_at=time, source=source) for number, source in enumerate((9, 7, 8))]
    assert roster_of(*turns).latest(ANYTHING, "c1", 2) == ids(turns[2], turns[0])


def test_no_turn_is_the_latest_of_none() -> None:
    roster = roster_of(made("a"))
    assert roster.latest(ANYTHING, "c1", 0) == []
    assert roster.latest(ANYTHING, "unknown", 5) == []
    assert MemoryColumns().latest(ANYTHING, "c1", 5) == []


def test_other_conversations_superseded_turns_and_what_was_distilled_are_left_out() -> None:
    kept = made("kept", 0)
    roster = roster_of(
        kept,
        made("elsewhere", 1, conversation_id="c2"),
        made("replaced", 2, superseded_by="x"),
        made("distilled", 3, type="semantic"),
    )
    assert roster.latest(ANYTHING, "c1", 5) == ids(kept)


def test_a_conversation_of_the_same_name_in_another_project_counts_where_the_read_admits_it() -> None:
    here, there = made("here", 1, project="p1"), made("there", 0, project="p2")
    roster = roster_of(here, there)
    assert roster.latest(MemoryFilter("ana", {"project_id": ("p1",)}), "c1", 5) == ids(here)
    assert roster.latest(MemoryFilter("ana", {"project_id": ("p2",)}), "c1", 5) == ids(there)
    assert roster.latest(MemoryFilter("ana", {"project_id": None}), "c1", 5) == ids(there, here)


def test_a_hole_is_no_turn() -> None:
    [turn] = [made("a")]
    trait = Trait.of(turn)
    row = MemoryRow(30, turn.memory_id, 0, turn.occurred_ms, turn.source, 3, 0.5, superseded=False, space=None)
    assert MemoryColumns([row], {0: trait}).latest(ANYTHING, "c1", 9) == ids(turn)
