"""Turns that are written in slices: what happens between two of them is not undone, and a kill loses nothing."""

import pytest

from agents.memory.write_memory import finish
from agents.rules.items.analysis import analyse
from schemas.state.memories import Memory
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.turns import record, turn
from tests.harnesses.items import FLY, HERE, LOCAL, ItemsHarness

EDITOR, TEA = "I prefer Vim over Emacs.", "My locker code is 4471."
THREE = f"{FLY} {EDITOR} {TEA}"


@pytest.fixture
def harness(words: SqliteLexicalIndex) -> ItemsHarness:
    return ItemsHarness(words)


def interrupted(harness: ItemsHarness, text: str, number: int, slices: int) -> None:
    """Begin to remember a turn, and stop after some slices as a kill does."""
    writing = harness.agent.turn(turn(text, turn_id=f"t{number}"), record(offset=number))
    for _ in range(slices):
        next(writing)
    writing.close()


def remembered(harness: ItemsHarness, text: str, number: int) -> Memory:
    accepted = finish(harness.agent.turn(turn(text, turn_id=f"t{number}"), record(offset=number)))
    harness.events = accepted.events
    return harness.get(accepted.result.memory_id)


@pytest.mark.parametrize("slices", [1, 2, 3])
def test_turn_that_was_interrupted_is_finished_when_it_is_delivered_again(
    harness: ItemsHarness, slices: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    interrupted(harness, THREE, 1, slices)
    remembered(harness, THREE, 1)
    words = SqliteLexicalIndex(tmp_path_factory.mktemp("other"))
    words.open(HERE)
    whole = ItemsHarness(words)
    remembered(whole, THREE, 1)
    assert harness.state() == whole.state()
    assert harness.events == whole.events
    words.close()


def test_edit_that_was_interrupted_leaves_no_item_of_the_old_text(harness: ItemsHarness) -> None:
    remembered(harness, THREE, 1)
    writing = harness.agent.turn(turn(LOCAL, turn_id="t1"), record(offset=2))
    next(writing)
    writing.close()
    finish(harness.agent.turn(turn(LOCAL, turn_id="t1"), record(offset=2)))
    assert set(harness.items()) == {LOCAL}


def test_item_that_is_forgotten_in_between_is_not_made_again(harness: ItemsHarness) -> None:
    remembered(harness, THREE, 1)
    writing = harness.agent.turn(turn(f"Again: {THREE}", turn_id="t2"), record(offset=2))
    next(writing)
    assert harness.change("forget", memory_id=harness.items()[TEA].memory_id) == 1
    finish(writing)
    assert TEA not in harness.items()
    assert {FLY, EDITOR} <= set(harness.items())


def test_turn_that_is_forgotten_in_between_leaves_nothing(harness: ItemsHarness) -> None:
    writing = harness.agent.turn(turn(THREE, turn_id="t1"), record(offset=1))
    next(writing)
    [said] = [memory for memory in harness.memories.all() if memory.origin == "said"]
    harness.change("forget", memory_id=said.memory_id)
    finish(writing)
    assert list(harness.memories.all()) == []
    assert harness.items() == {}


def test_status_that_arrives_in_between_stays(harness: ItemsHarness) -> None:
    remembered(harness, f"{FLY} {EDITOR}", 1)
    writing = harness.agent.turn(turn(EDITOR, turn_id="t1"), record(offset=2))
    next(writing)
    [said] = [memory for memory in harness.memories.all() if memory.origin == "said"]
    failed = said.model_copy(update={"embedding": said.embedding.model_copy(update={"status": "failed"})})
    harness.write(failed)
    finish(writing)
    assert harness.get(said.memory_id).embedding.status == "failed"
    assert set(harness.items()) == {EDITOR}


def test_text_that_was_read_before_gives_the_same_items(harness: ItemsHarness) -> None:
    message = turn(THREE, turn_id="t1", occurred_at="2026-03-01T09:00:00Z")
    first = harness.say(THREE, 0)
    changed = first.model_copy(update={"text": LOCAL})
    for text in (analyse(memory, None, None, harness.get) for memory in (first, changed)):
        finish(harness.agent.turn(message.model_copy(update={"turn_id": f"{id(text)}"}), record(offset=3), text=text))
    assert set(harness.items()) == {FLY, EDITOR, TEA}
