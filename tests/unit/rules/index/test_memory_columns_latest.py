"""The last turns of a conversation, from the columns of its boundary."""

from agents.rules.index.memory_columns import MemoryColumns, MemoryRow
from agents.rules.index.traits import Trait
from schemas.models.vectors import MemoryFilter
from schemas.state.memories import Memory
from tests.builders.memories import made

ANYTHING = MemoryFilter(boundary="ana")


def store_of(*memories: Memory) -> MemoryColumns:
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
    store = store_of(turns[3], turns[0], turns[4], turns[2], turns[1])
    assert store.latest(ANYTHING, "c1", 3) == ids(*turns[2:])
    assert store.latest(ANYTHING, "c1", 9) == ids(*turns)


def test_turns_of_one_time_are_ordered_by_arrival() -> None:
    time = made("", 0).occurred_at
    turns = [made("a", number, occurred_at=time, source=source) for number, source in enumerate((9, 7, 8))]
    assert store_of(*turns).latest(ANYTHING, "c1", 2) == ids(turns[2], turns[0])


def test_latest_of_an_unknown_conversation_is_empty() -> None:
    store = store_of(made("a"))
    assert store.latest(ANYTHING, "c1", 0) == []
    assert store.latest(ANYTHING, "unknown", 5) == []
    assert MemoryColumns().latest(ANYTHING, "c1", 5) == []


def test_other_conversations_superseded_and_distilled_are_excluded() -> None:
    kept = made("kept", 0)
    store = store_of(
        kept,
        made("elsewhere", 1, conversation_id="c2"),
        made("replaced", 2, superseded_by="x"),
        made("distilled", 3, type="semantic"),
    )
    assert store.latest(ANYTHING, "c1", 5) == ids(kept)


def test_same_conversation_name_in_several_projects_follows_the_filter() -> None:
    here, there = made("here", 1, project="p1"), made("there", 0, project="p2")
    store = store_of(here, there)
    assert store.latest(MemoryFilter("ana", {"project_id": ("p1",)}), "c1", 5) == ids(here)
    assert store.latest(MemoryFilter("ana", {"project_id": ("p2",)}), "c1", 5) == ids(there)
    assert store.latest(MemoryFilter("ana", {"project_id": None}), "c1", 5) == ids(there, here)


def test_empty_row_is_no_turn() -> None:
    [turn] = [made("a")]
    trait = Trait.of(turn)
    row = MemoryRow(30, turn.memory_id, 0, turn.occurred_ms, turn.source, 3, 0.5, superseded=False, space=None)
    assert MemoryColumns([row], {0: trait}).latest(ANYTHING, "c1", 9) == ids(turn)
