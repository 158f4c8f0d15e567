"""`Remember`: items in another register than their turn, and what becomes of them with the turn and with both modes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.memory.write_memory import finish
from schemas.internal.changes import Change
from schemas.scopes import Scope
from schemas.state.memories import Memory
from schemas.state.modes import Mode
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.turns import record, turn
from tests.harnesses.understood import CODE, DIARY, PARTITION, UnderstoodHarness

MOVED, TIRED = "We moved the ledger to Postgres last night", "I feel exhausted by it"
BOTH = f"{MOVED}, and {TIRED}."
FOUND = [
    {"kind": "fact", "text": MOVED, "quote": MOVED},
    {"kind": "fact", "text": TIRED, "quote": TIRED, "mode": "diary"},
]
PRIVATE = DIARY.model_copy(update={"private": True})


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[UnderstoodHarness]:
    words = SqliteLexicalIndex(tmp_path)
    words.open(PARTITION)
    yield UnderstoodHarness(words)
    words.close()


def understood(harness: UnderstoodHarness, mode: str | None = None, **answer: Any) -> Memory:
    """Remember a turn in two registers, and the answer of a model about it; the turn."""
    said = harness.say(BOTH, mode=mode)
    harness.understood(said, **({"mode": "code", "items": FOUND} | answer))
    return said


def change(harness: UnderstoodHarness, action: Any, **fields: Any) -> None:
    scope = Scope(user_id="u1", project_id="p1")
    for _ in harness.agent.changed(Change(scope=scope, action=action, **fields)):
        pass


def modes(harness: UnderstoodHarness, said: Memory) -> dict[str, str]:
    return {text: item.mode for text, item in harness.items(said).items()}


def test_item_is_in_its_register_and_the_other_in_its_turns(harness: UnderstoodHarness) -> None:
    said = understood(harness)
    assert harness.memory(said).mode == "code"
    assert modes(harness, said) == {MOVED: "code", TIRED: "diary"}


def test_item_has_the_decay_of_its_mode(harness: UnderstoodHarness) -> None:
    said = understood(harness)
    assert harness.items(said)[TIRED].decay == DIARY.decay


@pytest.mark.parametrize("answered", ["poetry", "theirs", "", "code", None])
def test_item_without_a_declared_mode_of_its_own_is_in_its_turns(
    harness: UnderstoodHarness, answered: str | None
) -> None:
    said = understood(harness, items=[FOUND[1] | {"mode": answered}])
    assert set(modes(harness, said).values()) == {"code"}


def test_former_name_of_a_mode_is_understood(harness: UnderstoodHarness) -> None:
    said = understood(harness, items=[FOUND[1] | {"mode": "journal"}])
    assert modes(harness, said) == {TIRED: "diary"}


def test_mode_of_the_caller_holds_for_items(harness: UnderstoodHarness) -> None:
    said = understood(harness, mode="code")
    assert set(modes(harness, said).values()) == {"code"}


def test_items_stay_in_a_private_mode(harness: UnderstoodHarness) -> None:
    harness.declare(CODE.model_copy(update={"private": True}), DIARY)
    said = understood(harness)
    assert {(item.mode, item.visibility.private) for item in harness.items(said).values()} == {("code", True)}


def test_item_in_a_private_mode_is_private(harness: UnderstoodHarness) -> None:
    harness.declare(CODE, PRIVATE)
    said = understood(harness)
    assert {item.mode: item.visibility.private for item in harness.items(said).values()} == {
        "code": False,
        "diary": True,
    }


def test_item_follows_what_filters_its_mode(harness: UnderstoodHarness) -> None:
    said = understood(harness)
    harness.declare(CODE, PRIVATE)
    change(harness, "filter", mode="diary")
    assert harness.items(said)[TIRED].visibility.private


def test_item_follows_what_filters_its_turn_and_keeps_its_mode(harness: UnderstoodHarness) -> None:
    said = understood(harness)
    change(harness, "filter", memory_id=said.memory_id, private=True)
    item = harness.items(said)[TIRED]
    assert item.mode == "diary"
    assert item.visibility.private


def test_redelivered_turn_finds_no_item_again_that_a_model_has_parted(harness: UnderstoodHarness) -> None:
    said = understood(harness)
    before = modes(harness, said)
    finish(harness.agent.turn(turn(BOTH, turn_id="t"), record(offset=1)))
    assert modes(harness, said) == before


def test_repeated_answer_changes_nothing(harness: UnderstoodHarness) -> None:
    said = understood(harness)
    before = harness.items(said)
    harness.understood(said, mode="code", items=FOUND)
    assert harness.items(said) == before


def test_forgotten_item_is_not_made_again(harness: UnderstoodHarness) -> None:
    said = understood(harness)
    change(harness, "forget", memory_id=harness.items(said)[TIRED].memory_id)
    finish(harness.agent.turn(turn(BOTH, turn_id="t"), record(offset=1)))
    harness.understood(said, mode="code", items=FOUND)
    assert modes(harness, said) == {MOVED: "code"}


def test_parts_of_an_item_that_was_forgotten_are_not_made(harness: UnderstoodHarness) -> None:
    said = harness.say(BOTH)
    [whole] = harness.items(said).values()
    change(harness, "forget", memory_id=whole.memory_id)
    harness.understood(said, mode="code", items=FOUND)
    assert harness.items(said) == {}


def test_item_goes_with_its_turn(harness: UnderstoodHarness) -> None:
    said = understood(harness)
    item = harness.items(said)[TIRED]
    change(harness, "forget", memory_id=said.memory_id)
    assert harness.memories.get(PARTITION, item.memory_id) is None


def test_item_goes_with_an_edit_of_its_turn(harness: UnderstoodHarness) -> None:
    said = understood(harness)
    item = harness.items(said)[TIRED]
    harness.say("Nothing happened.", offset=2)
    assert harness.memories.get(PARTITION, item.memory_id) is None


def test_items_follow_a_turn_that_is_moved_by_hand(harness: UnderstoodHarness) -> None:
    said = understood(harness)
    change(harness, "move", memory_id=said.memory_id, to="general")
    assert set(modes(harness, said).values()) == {"general"}


def test_item_stays_where_the_mode_of_its_turn_is_renamed(harness: UnderstoodHarness) -> None:
    said = understood(harness)
    harness.declare(Mode(name="craft", embedder="tiny32", embedding_dim=32, formerly=("code",)), DIARY)
    change(harness, "move", mode="code", to="craft")
    assert modes(harness, said) == {MOVED: "craft", TIRED: "diary"}


@pytest.mark.parametrize("then", ["redelivered", "understood"])
def test_item_follows_a_renamed_mode(harness: UnderstoodHarness, then: str) -> None:
    said = understood(harness)
    harness.declare(CODE, Mode(name="log", embedder="tiny32", embedding_dim=32, formerly=("diary",)))
    change(harness, "move", mode="diary", to="log")
    if then == "redelivered":
        finish(harness.agent.turn(turn(BOTH, turn_id="t"), record(offset=1)))
    else:
        harness.understood(said, mode="code", items=FOUND)
    assert modes(harness, said) == {MOVED: "code", TIRED: "log"}


def test_item_of_a_deleted_mode_moves_and_stays_there(harness: UnderstoodHarness) -> None:
    said = understood(harness)
    harness.declare(CODE)
    change(harness, "move", mode="diary", to="general")
    finish(harness.agent.turn(turn(BOTH, turn_id="t"), record(offset=1)))
    assert modes(harness, said) == {MOVED: "code", TIRED: "general"}


def test_item_of_a_mode_that_is_forgotten_goes_and_its_turn_stays(harness: UnderstoodHarness) -> None:
    said = understood(harness)
    change(harness, "forget", mode="diary")
    assert {"turn": harness.memory(said).mode, **modes(harness, said)} == {"turn": "code", MOVED: "code"}


def test_item_made_again_after_its_mode_was_deleted_is_in_its_turns(harness: UnderstoodHarness) -> None:
    said = understood(harness)
    harness.declare(CODE)
    change(harness, "filter", memory_id=said.memory_id, private=True)
    assert set(modes(harness, said).values()) == {"code"}
