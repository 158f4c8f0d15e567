"""`Remember`: turns in, records and events out."""

from typing import Any

import pytest

from agents.memory.write_memory import finish
from schemas.failures import Rejected, Unavailable
from schemas.internal.events import Remembered
from schemas.state.modes import ForgottenBefore, ModeDeclarations
from tests.builders.stores import fake_stores, remember_over
from tests.builders.turns import record, turn
from tests.harnesses.remember import CODE, PARTITION, RememberHarness


def test_new_turn_is_stored_indexed_and_published(harness: RememberHarness) -> None:
    accepted = harness.say("violin", 3)
    assert accepted.result.version == 1
    assert accepted.result.duplicate is False
    assert accepted.result.turn_id == "t"
    assert accepted.result.mode == "general"
    assert accepted.result.mode_source == "fallback"
    assert accepted.event == Remembered(memory=harness.memory(accepted))
    assert harness.memory(accepted).embedding.status == "pending"
    assert harness.count_postings("violin") == 1


def test_turn_without_id_gets_one_in_its_reply(harness: RememberHarness) -> None:
    accepted = harness.say("violin", 3, turn_id=None)
    assert accepted.result.turn_id.startswith("derived-")
    assert harness.say("violin", 3, turn_id=None).result == accepted.result


def forget_turns_before(harness: RememberHarness, offset: int, at_ms: int) -> None:
    """Have the user forgotten when the turns ended here, at this time."""
    forgotten = ForgottenBefore(offset=offset, at_ms=at_ms)
    harness.modes.put(PARTITION, "u1", ModeDeclarations(forgotten_turns=forgotten))


def test_turn_of_before_its_user_was_forgotten_is_forgotten(harness: RememberHarness) -> None:
    forget_turns_before(harness, 4, record(offset=9).timestamp_ms)
    accepted = harness.say("violin", 3, mode="code")
    assert accepted.forgotten is True
    assert accepted.events == []
    assert harness.memories.is_forgotten(PARTITION, accepted.result.memory_id)


def test_edit_of_before_its_user_was_forgotten_is_not_stored(harness: RememberHarness) -> None:
    before = harness.memory(harness.say("violin", 2))
    forget_turns_before(harness, 4, record(offset=9).timestamp_ms)
    assert harness.memory(harness.say("cello", 3)) == before


@pytest.mark.parametrize("offset", [4, 3], ids=["later", "later in a recreated topic"])
def test_turn_after_its_user_was_forgotten_is_stored(harness: RememberHarness, offset: int) -> None:
    forget_turns_before(harness, 4, record(offset=offset).timestamp_ms - (offset < 4))
    assert harness.memory(harness.say("violin", offset)).text == "violin"


def test_duplicate_changes_and_publishes_nothing(harness: RememberHarness) -> None:
    before = harness.memory(harness.say("violin", 3))
    again = harness.say("violin", 4)
    assert again.result.duplicate is True
    assert again.result.version == 1
    assert again.event is None
    assert harness.memory(again) == before


def test_edit_replaces_the_indexed_text(harness: RememberHarness) -> None:
    harness.say("violin", 3)
    edited = harness.say("cello", 4)
    assert edited.result.version == 2
    assert edited.result.duplicate is False
    assert edited.event is not None
    assert harness.count_postings("violin") == 0
    assert harness.count_postings("cello") == 1


def test_restored_text_is_current_without_a_new_version(harness: RememberHarness) -> None:
    first = harness.say("violin", 3)
    harness.say("cello", 4)
    back = harness.say("violin", 5)
    assert back.result.version == 2
    assert back.result.duplicate is False
    assert harness.memory(back).text == "violin"
    assert harness.memory(back).current == 0
    assert harness.count_postings("violin") == 1
    assert harness.count_postings("cello") == 0
    assert first.event is not None
    assert back.event is not None
    assert back.event.memory.content_hash == first.event.memory.content_hash


def test_redelivered_record_is_published_again_while_it_waits(harness: RememberHarness) -> None:
    first = harness.say("violin", 3)
    again = harness.say("violin", 3)
    assert again == first
    assert not again.result.duplicate


def test_redelivery_indexes_a_record_stored_before_a_kill(harness: RememberHarness) -> None:
    first = harness.say("violin", 3)
    harness.words.remove(PARTITION, first.result.memory_id)
    harness.say("violin", 3)
    assert harness.count_postings("violin") == 1


def test_replaced_text_stays_replaced_after_a_killed_worker(harness: RememberHarness) -> None:
    harness.say("the heron", 1)
    edited = harness.say("the otter", 2)
    again = harness.say("the heron", 1)
    assert again.event is None
    assert again.result.duplicate is False
    assert again.result.version == 2
    assert harness.memory(edited).text == "the otter"
    assert harness.count_postings("heron") == 0
    assert harness.count_postings("otter") == 1


def test_redelivered_embedded_turn_requests_no_vector(harness: RememberHarness) -> None:
    harness.report_embedded(harness.say("violin", 3))
    again = harness.say("violin", 3)
    assert again.event is None
    assert harness.memory(again).embedding.status == "ready"


def test_replay_leaves_equal_texts_ids_and_versions(harness: RememberHarness) -> None:
    for _ in range(2):
        for offset, text in enumerate(["violin", "cello", "violin", "drum"]):
            last = harness.say(text, offset)
    assert last.result.version == 3
    assert harness.memory(last).text == "drum"
    assert harness.count_postings("drum") == 1
    assert harness.words.memory_columns(PARTITION, "u1").documents == 1


def test_turn_or_edit_in_an_undeclared_mode_is_rejected_without_trace(harness: RememberHarness) -> None:
    with pytest.raises(Rejected, match="unknown_mode"):
        harness.say("violin", 3, mode="journal")
    assert list(harness.memories.all()) == []
    before = harness.memory(harness.say("violin", 4))
    with pytest.raises(Rejected, match="unknown_mode"):
        harness.say("cello", 5, mode="journal")
    assert list(harness.memories.all()) == [before]
    assert harness.count_postings("violin") == 1
    assert harness.count_postings("cello") == 0


def test_duplicate_is_recognised_after_its_mode_is_deleted(harness: RememberHarness) -> None:
    harness.say("violin", 3)
    assert harness.say("violin", 4, mode="a-mode-of-the-past").result.duplicate


def test_same_turn_of_another_user_is_another_memory(harness: RememberHarness) -> None:
    mine = harness.say("violin", 3)
    theirs = finish(harness.agent.turn(turn("violin", turn_id="t", scope={"user_id": "u2"}), record(offset=4)))
    assert theirs.result.memory_id != mine.result.memory_id
    assert not theirs.result.duplicate


@pytest.mark.parametrize("full", ["words", "memories"])
def test_turn_failed_by_a_full_store_is_new_on_retry(harness: RememberHarness, full: str) -> None:
    store: Any = getattr(harness, full)
    store.full = True
    with pytest.raises(Unavailable):
        harness.say("violin", 3)
    store.full = False
    accepted = harness.say("violin", 3)
    assert accepted.result.duplicate is False
    assert harness.count_postings("violin") == 1
    assert accepted.event is not None


def test_turn_has_the_mode_and_decay_of_its_caller(harness: RememberHarness) -> None:
    harness.modes.declare(CODE, boundary="u1", partition=PARTITION)
    accepted = harness.say("violin", 3, mode="code")
    assert accepted.result.mode == "code"
    assert accepted.result.mode_source == "caller"
    assert harness.memory(accepted).decay == "slow"
    harness.modes.put(PARTITION, "u1", harness.modes.get(PARTITION, "u1").model_copy(update={"user_default": "code"}))
    accepted = harness.say("cello", 4, turn_id="other")
    assert accepted.result.mode == "code"
    assert accepted.result.mode_source == "user_default"


def test_turn_and_rule_have_the_decay_of_their_types(harness: RememberHarness) -> None:
    by_type = CODE.model_copy(update={"decay": {"episodic": "fast", "procedural": "none"}})
    harness.modes.declare(by_type, boundary="u1", partition=PARTITION)
    turn = harness.memory(harness.say("To deploy the ledger, run make ship and then tell Ana.", 3, mode="code"))
    items = [harness.memories.get(PARTITION, item_id) for item_id in turn.items]
    decays = {memory.type: memory.decay for memory in (turn, *items) if memory is not None}
    assert decays == {"episodic": "fast", "procedural": "none"}


def test_type_that_a_decay_does_not_name_is_medium(harness: RememberHarness) -> None:
    by_type = CODE.model_copy(update={"decay": {"procedural": "none"}})
    harness.modes.declare(by_type, boundary="u1", partition=PARTITION)
    assert harness.memory(harness.say("violin", 3, mode="code")).decay == "medium"


def test_mode_of_another_user_is_undeclared(harness: RememberHarness) -> None:
    harness.modes.declare(CODE, boundary="u2", partition=PARTITION)
    with pytest.raises(Rejected, match="unknown_mode"):
        harness.say("violin", 3, mode="code")


def test_turn_for_a_model_is_pending(harness: RememberHarness) -> None:
    assert harness.memory(harness.say("violin", 3)).reading.status == "rules"
    stores = fake_stores(harness.words, harness.memories, harness.modes).at(PARTITION)
    harness.agent = remember_over(stores, harness.embedders, asks_model=True)
    accepted = harness.say("cello", 4)
    assert harness.memory(accepted).reading.status == "pending"
    assert list(harness.words.awaiting_understanding(PARTITION)) == [accepted.result.memory_id]


@pytest.mark.parametrize("text", ["violin", "cello"])
def test_forgotten_turn_stays_forgotten_without_trace(harness: RememberHarness, text: str) -> None:
    forgotten = harness.say("violin", 3).result.memory_id
    harness.words.remove(PARTITION, forgotten)
    harness.memories.forget(PARTITION, forgotten)
    again = harness.say(text, 4, mode="a-mode-of-the-past")
    assert again.forgotten is True
    assert again.event is None
    assert again.result.memory_id == forgotten
    assert list(harness.memories.all()) == []
    assert harness.count_postings("violin") == 0
    assert harness.count_postings("cello") == 0
