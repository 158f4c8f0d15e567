"""`Remember`: a language model's answer about a turn, and the move of its memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.memory.understood import UnderstoodResult
from agents.memory.write_memory import finish
from schemas.internal.events import Forgotten, Learned, Remembered
from schemas.state.memories import Memory
from schemas.state.modes import GENERAL
from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from tests.builders.turns import record, turn
from tests.harnesses.understood import CODE, DIARY, PARTITION, UnderstoodHarness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[UnderstoodHarness]:
    words = SqliteLexicalIndex(tmp_path)
    words.open(PARTITION)
    yield UnderstoodHarness(words)
    words.close()


def decided(memory: Memory) -> tuple[str, str]:
    return memory.mode, memory.mode_source


def test_model_answer_moves_a_memory_with_its_vector(harness: UnderstoodHarness) -> None:
    memory = harness.embed(harness.say())
    result = harness.understood(memory, mode="diary", topic="music")
    moved = harness.memory(memory)
    assert result.event == Remembered(memory=moved)
    assert decided(moved) == ("diary", "model")
    assert moved.decay == "slow"
    assert moved.reading.topic == "music"
    assert moved.embedding.status == "pending"
    assert moved.embedding.place == memory.embedding.place
    assert moved.embedding.content_hash == memory.content_hash, "a ready vector can be copied"
    assert harness.words.counts(PARTITION, "u1") == {"diary": {"pending": 1}}


def test_unembedded_memory_moves(harness: UnderstoodHarness) -> None:
    memory = harness.say()
    assert harness.understood(memory, mode="code").event == Remembered(memory=harness.memory(memory))
    assert decided(harness.memory(memory)) == ("code", "model")


@pytest.mark.parametrize("answered", [None, "", "poetry", "theirs", "Code", "*", "code "])
def test_answer_with_an_undeclared_mode_is_stored_without_a_move(
    harness: UnderstoodHarness, answered: str | None
) -> None:
    memory = harness.embed(harness.say())
    assert harness.understood(memory, mode=answered, topic="music") == UnderstoodResult()
    after = harness.memory(memory)
    assert decided(after) == (GENERAL, "fallback")
    assert after.reading.topic == "music"
    assert after.reading.status == "model"
    assert after.embedding == memory.embedding


def test_callers_mode_stays_and_the_answer_is_stored(harness: UnderstoodHarness) -> None:
    memory = harness.embed(harness.say(mode="code"))
    assert harness.understood(memory, mode="diary", topic="music") == UnderstoodResult()
    after = harness.memory(memory)
    assert decided(after) == ("code", "caller")
    assert after.reading.topic == "music"
    assert after.embedding.status == "ready"


def test_model_that_agrees_with_the_default_moves_nothing(harness: UnderstoodHarness) -> None:
    harness.declare(CODE, user_default="code")
    memory = harness.embed(harness.say())
    assert harness.understood(memory, mode="code") == UnderstoodResult(None, agrees_with_default=True)
    assert decided(harness.memory(memory)) == ("code", "model")
    assert harness.memory(memory).embedding == memory.embedding


@pytest.mark.parametrize(
    ("mode", "agrees"), [("code", True), ("diary", False), (GENERAL, False), (None, None), ("poetry", None)]
)
def test_agreement_with_the_default_is_reported(
    harness: UnderstoodHarness, mode: str | None, agrees: bool | None
) -> None:
    harness.declare(CODE, DIARY, user_default=GENERAL, project_defaults={"p1": "code"})
    assert harness.understood(harness.say(), mode=mode).agrees_with_default is agrees


def test_against_a_caller_no_model_agrees_or_disagrees(harness: UnderstoodHarness) -> None:
    harness.declare(CODE, user_default="code")
    assert harness.understood(harness.say(mode="code"), mode="code").agrees_with_default is None


def test_answer_about_a_replaced_text_changes_nothing(harness: UnderstoodHarness) -> None:
    old = harness.say()
    new = harness.say("cello", 2)
    assert harness.understood(old, mode="code", topic="violins") == UnderstoodResult()
    assert harness.memory(new) == new


def test_edit_is_pending_again_and_keeps_its_mode(harness: UnderstoodHarness) -> None:
    harness.understood(harness.say(), mode="code", topic="violins")
    edited = harness.say("cello", 2)
    assert decided(edited) == ("code", "model")
    assert edited.reading.status == "pending"
    assert edited.reading.topic is None
    harness.understood(edited, mode="diary")
    assert decided(harness.memory(edited)) == ("diary", "model")


def test_answer_about_an_unknown_memory_changes_nothing(harness: UnderstoodHarness) -> None:
    memory = harness.say()
    harness.memories.forget(PARTITION, memory.memory_id)
    assert harness.understood(memory, mode="code") == UnderstoodResult()
    assert list(harness.memories.all()) == []


def test_invalid_answer_ends_the_wait(harness: UnderstoodHarness) -> None:
    memory = harness.say()
    assert list(harness.words.awaiting_understanding(PARTITION)) == [memory.memory_id]
    assert harness.understood(memory, valid=False) == UnderstoodResult()
    assert list(harness.words.awaiting_understanding(PARTITION)) == []
    assert decided(harness.memory(memory)) == (GENERAL, "fallback")
    assert harness.memory(memory).reading.status == "rules"


def test_same_answer_again_changes_nothing(harness: UnderstoodHarness) -> None:
    memory = harness.say()
    harness.understood(memory, mode="code", entities=("Ana",))
    moved = harness.embed(harness.memory(memory))
    assert harness.understood(memory, mode="code", entities=("Ana",)).event is None
    assert harness.memory(memory) == moved


def test_untold_move_of_a_killed_worker_is_sent_on_redelivery(harness: UnderstoodHarness) -> None:
    memory = harness.say()
    untold = harness.understood(memory, mode="code").event
    assert harness.understood(memory, mode="code").event == untold


def test_first_answer_that_moves_nothing_asks_for_no_second_vector(harness: UnderstoodHarness) -> None:
    assert harness.understood(harness.say(), topic="music").event is None
    assert harness.understood(harness.say(mode="code", offset=2, text="cello"), mode="code").event is None


def test_answer_with_the_old_name_of_a_renamed_mode_applies(harness: UnderstoodHarness) -> None:
    memory = harness.say()
    harness.understood(memory, mode="journal")
    assert decided(harness.memory(memory)) == ("diary", "model")


def test_entities_of_model_and_rules_are_indexed(harness: UnderstoodHarness) -> None:
    memory = harness.say("Lunch with Mrs Okafor")
    harness.understood(memory, entities=("Riverside Café",))
    okafor, cafe = harness.words.entity_postings(PARTITION, "u1", ["Mrs Okafor", "Riverside Café"])
    assert len(okafor.numbers) == 1
    assert len(cafe.numbers) == 1


def fact(text: str) -> dict[str, Any]:
    return {"kind": "fact", "text": text, "quote": "violin", "confidence": 0.9}


def filed(text: str) -> dict[str, Any]:
    return {"name": text, "confidence": 0.8}


def test_later_answer_replaces_what_the_earlier_one_found(harness: UnderstoodHarness) -> None:
    memory = harness.say()
    harness.understood(
        memory,
        topic="old",
        entities=("Old",),
        items=[fact("It is old."), fact("It stays.")],
        categories=[filed("music")],
    )
    gone, kept = (harness.items(memory)[text] for text in ("It is old.", "It stays."))
    result = harness.understood(
        memory,
        job="refresh-0-1",
        entities=("New",),
        items=[fact("It stays."), fact("It is new.")],
        categories=[filed("food")],
    )
    after, items = harness.memory(memory), harness.items(memory)
    assert sorted(items) == ["It is new.", "It stays."]
    assert after.reading.topic is None
    assert "Old" not in after.entities
    assert "New" in after.entities
    stays = items[kept.text].item
    assert stays is not None
    assert [category.name for category in stays.categories] == ["food"]
    note = after.reading.refreshed
    assert note is not None
    assert note.added == (items["It is new."].memory_id,)
    assert note.removed == (gone.memory_id,)
    assert note.job_id == "refresh-0-1"
    assert note.tokens == 7
    assert note.is_answered
    assert after.reading.revision == 3
    assert Forgotten(memory_id=gone.memory_id, places=()) in result.events
    assert any(isinstance(event, Learned) for event in result.events)
    assert harness.memories.get(PARTITION, gone.memory_id) is None
    assert not harness.words.has(PARTITION, gone.memory_id)


def test_categories_stay_where_another_turn_supports_the_item(harness: UnderstoodHarness) -> None:
    memory = harness.say()
    other = finish(harness.agent.turn(turn("violin", turn_id="other"), record(offset=2))).event
    assert other is not None
    harness.understood(other.memory, items=[fact("It stays.")], categories=[filed("pets")])
    harness.understood(memory, items=[fact("It stays.")], categories=[filed("music")])
    harness.understood(memory, job="refresh-0-1", items=[fact("It stays.")], categories=[filed("food")])
    [item] = harness.items(memory).values()
    assert item.item is not None
    assert [category.name for category in item.item.categories] == ["food", "music", "pets"]


def test_second_answer_to_the_same_job_is_not_applied(harness: UnderstoodHarness) -> None:
    memory = harness.say()
    harness.understood(memory, job="refresh-0-1", items=[fact("It is first.")])
    before = harness.memory(memory)
    assert harness.understood(memory, job="refresh-0-1", minutes=1, items=[fact("It is second.")]) == UnderstoodResult()
    assert harness.memory(memory) == before
    harness.understood(memory, job="refresh-0-2", minutes=1, items=[fact("It is second.")])
    assert list(harness.items(memory)) == ["It is second."]


def test_redelivered_answer_repeats_its_events_and_keeps_the_count(harness: UnderstoodHarness) -> None:
    memory = harness.say()
    harness.understood(memory, items=[fact("It is old.")], intention={"goals": ["to play"]})
    [gone] = harness.items(memory).values()
    harness.understood(memory, job="refresh-0-1")
    before = harness.memory(memory)
    again = harness.understood(memory, job="refresh-0-1")
    assert harness.memory(memory) == before
    assert before.reading.refreshed is not None
    assert before.reading.refreshed.removed == (gone.memory_id,)
    assert Forgotten(memory_id=gone.memory_id, places=()) in again.events
    [learned] = [event for event in again.events if isinstance(event, Learned)]
    assert learned.update is None
    assert learned.items == ()


def test_invalid_later_answer_keeps_the_earlier_one(harness: UnderstoodHarness) -> None:
    memory = harness.say()
    harness.understood(memory, topic="music", items=[fact("It stays.")])
    harness.understood(memory, valid=False, job="refresh-0-1")
    after = harness.memory(memory)
    assert list(harness.items(memory)) == ["It stays."]
    assert after.reading.topic == "music"
    assert after.reading.status == "model"
    assert after.reading.tried == "understand-1"
    assert after.reading.refreshed is not None
    assert not after.reading.refreshed.is_answered
    assert after.reading.refreshed.removed == ()
