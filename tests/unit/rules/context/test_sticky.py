from collections.abc import Sequence
from typing import Any

from agents.rules.context.sticky import MAX_CORRECTIONS, MAX_ERRORS, MAX_STICKY, invariants_of, sticky_memories
from agents.rules.context.visible_memories import VisibleSet
from agents.rules.cues.labels import label_memory
from agents.rules.index.memory_columns import MemoryColumns, MemoryRow, Trait
from schemas.models.vectors import MemoryFilter
from schemas.state.memories import Memory
from tests.builders.memories import made
from tests.builders.taxonomies import SHIPPED


def visible_set(memories: Sequence[Memory], conversation: str | None = "c1", project: str = "default") -> VisibleSet:
    """Return the visible set of these memories, numbered by their places."""
    traits = {place: Trait.of(memory) for place, memory in enumerate(memories)}
    rows = [
        MemoryRow(
            number=place,
            memory_id=memory.memory_id,
            trait=place,
            occurred_ms=memory.occurred_ms,
            source=memory.source,
            length=3,
            importance=0.5,
            superseded=memory.superseded_by is not None,
            space=None,
            labels=label_memory(memory).value,
        )
        for place, memory in enumerate(memories)
    ]
    where = MemoryFilter("ana", {"user_id": ("ana",), "project_id": (project,)})
    return VisibleSet.of(MemoryColumns(rows, traits), where, conversation)


def kept(*memories: Memory, **where: Any) -> list[tuple[int, str]]:
    found = sticky_memories(visible_set(memories, **where), invariants_of(SHIPPED.sticky))
    return [(invariant.priority, memories[number].text) for invariant, number in found]


def test_highest_priority_comes_first() -> None:
    turns = [
        made("Stack trace: Authentication failing", 0),
        made("Must support 10,000 concurrent users", 1),
        made("No, use LDAP not OAuth", 2),
        made("Must validate all user input", 3),
        made("We talked about the weather.", 4),
    ]
    assert [priority for priority, _ in kept(*turns)] == [1000, 900, 800, 700]


def test_within_a_priority_conversation_then_newest_come_first() -> None:
    turns = [
        made("It must run offline.", 0),
        made("It must run on Postgres.", 5, conversation_id="c2"),
        made("It must run on Linux.", 2),
    ]
    assert [text for _, text in kept(*turns)] == [
        "It must run on Linux.",
        "It must run offline.",
        "It must run on Postgres.",
    ]


def test_only_the_latest_corrections_are_sticky() -> None:
    turns = [made(f"No, use port {number}.", number) for number in range(10)]
    assert [text for _, text in kept(*turns)] == [f"No, use port {9 - place}." for place in range(MAX_CORRECTIONS)]
    elsewhere = [made(f"No, use port {number}.", number, conversation_id="c2") for number in range(10)]
    assert [text for _, text in kept(*elsewhere)] == ["No, use port 9."]


def test_error_resolved_later_in_its_conversation_is_not_current() -> None:
    error, other = made("The login fails again.", 0), made("The export crashes.", 4)
    assert kept(error, made("It works now, thanks!", 1)) == []
    assert kept(error, made("It works now, thanks!", 1), other) == [(700, "The export crashes.")]
    assert kept(error, made("It works now, thanks!", 1, conversation_id="c2")) == [(700, "The login fails again.")]


def test_only_the_latest_errors_of_a_conversation_are_sticky() -> None:
    turns = [made(f"Error: step {number} failed", number) for number in range(6)]
    assert [text for _, text in kept(*turns)] == [f"Error: step {5 - place} failed" for place in range(MAX_ERRORS)]


def test_error_of_another_conversation_is_sticky_for_a_week() -> None:
    error, week = made("The export crashes.", 0, conversation_id="c2"), 7 * 24 * 60
    assert kept(error, made("Hello.", week)) == [(700, "The export crashes.")]
    assert kept(error, made("Hello.", week + 1)) == []


def test_assistants_set_no_rules_and_resolve_no_errors() -> None:
    rule, error = "It must run offline.", made("The login fails again.", 0)
    assert kept(made(rule, role="assistant")) == []
    assert kept(made(rule, role="tool")) == []
    assert kept(made(rule, role="system")) == [(800, rule)]
    assert kept(error, made("It works now.", 1, role="assistant")) == [(700, error.text)]
    assert kept(made("1 failed\nE   AssertionError: no", role="tool")) == [(700, "1 failed\nE   AssertionError: no")]


def test_superseded_or_other_project_memories_are_not_sticky() -> None:
    assert kept(made("It must run offline.", superseded_by="x")) == []
    assert kept(made("It must run offline.", project="p2")) == []


def test_without_a_conversation_the_scope_is_used() -> None:
    turns = [made("It must run offline.", 0), made("No, use port 8080.", 1), made("The login fails again.", 2)]
    assert [priority for priority, _ in kept(*turns, conversation=None)] == [900, 800, 700]


def test_memory_is_sticky_once_and_the_number_is_limited() -> None:
    assert kept(made("Must validate all user input. It must run offline. The login fails.")) == [
        (1000, "Must validate all user input. It must run offline. The login fails.")
    ]
    assert len(kept(*(made(f"It must run on port {n}.", n) for n in range(MAX_STICKY + 50)))) == MAX_STICKY
