"""The keeper of memories: turns in, records and events out."""

import pytest

from schemas.failures import Rejected, Unavailable
from schemas.internal.events import Remembered
from tests.builders.stores import fake_stores, remember_over
from tests.builders.turns import record, turn
from tests.harnesses.turns import CODE, PARTITION, RememberHarness


def test_a_new_turn_is_kept_found_by_its_words_and_told(kept: RememberHarness) -> None:
    told = kept.tell("violin", 3)
    assert (told.result.version, told.result.duplicate, told.result.turn_id) == (1, False, "t")
    assert (told.result.mode, told.result.mode_source) == ("general", "fallback")
    assert told.event == Remembered(memory=kept.memory(told))
    assert kept.memory(told).embedding.status == "pending"
    assert kept.finds("violin") == 1


def test_a_turn_without_id_gets_one_that_its_reply_names(kept: RememberHarness) -> None:
    told = kept.tell("violin", 3, turn_id=None)
    assert told.result.turn_id.startswith("derived-")
    assert kept.tell("violin", 3, turn_id=None).result == told.result


def test_a_duplicate_changes_nothing_and_is_not_told(kept: RememberHarness) -> None:
    before = kept.memory(kept.tell("violin", 3))
    again = kept.tell("violin", 4)
    assert (again.result.duplicate, again.result.version, again.event) == (True, 1, None)
    assert kept.memory(again) == before


def test_an_edit_replaces_the_text_and_its_words(kept: RememberHarness) -> None:
    kept.tell("violin", 3)
    edited = kept.tell("cello", 4)
    assert (edited.result.version, edited.result.duplicate) == (2, False)
    assert edited.event is not None
    assert (kept.finds("violin"), kept.finds("cello")) == (0, 1)


def test_a_text_that_comes_back_stands_again_without_a_new_version(kept: RememberHarness) -> None:
    first = kept.tell("violin", 3)
    kept.tell("cello", 4)
    back = kept.tell("violin", 5)
    assert (back.result.version, back.result.duplicate) == (2, False)
    assert (kept.memory(back).text, kept.memory(back).current) == ("violin", 0)
    assert (kept.finds("violin"), kept.finds("cello")) == (1, 0)
    assert first.event is not None
    assert back.event is not None
    assert back.event.memory.content_hash == first.event.memory.content_hash


def test_redelivered_record_is_published_again_while_it_waits(kept: RememberHarness) -> None:
    first = kept.tell("violin", 3)
    again = kept.tell("violin", 3)
    assert again == first
    assert not again.result.duplicate


def test_a_record_that_a_killed_worker_had_kept_is_indexed_again(kept: RememberHarness) -> None:
    first = kept.tell("violin", 3)
    kept.words.remove(PARTITION, first.result.memory_id)
    kept.tell("violin", 3)
    assert kept.finds("violin") == 1


def test_replaced_text_stays_replaced_after_a_killed_worker(kept: RememberHarness) -> None:
    kept.tell("the heron", 1)
    edited = kept.tell("the otter", 2)
    again = kept.tell("the heron", 1)
    assert (again.event, again.result.duplicate, again.result.version) == (None, False, 2)
    assert kept.memory(edited).text == "the otter"
    assert (kept.finds("heron"), kept.finds("otter")) == (0, 1)


def test_a_redelivery_of_what_is_embedded_asks_for_no_vector(kept: RememberHarness) -> None:
    kept.embedded(kept.tell("violin", 3))
    again = kept.tell("violin", 3)
    assert again.event is None
    assert kept.memory(again).embedding.status == "ready"


def test_all_again_from_the_start_leaves_the_same_text_id_and_versions(kept: RememberHarness) -> None:
    for _ in range(2):
        for offset, text in enumerate(["violin", "cello", "violin", "drum"]):
            last = kept.tell(text, offset)
    assert (last.result.version, kept.memory(last).text, kept.finds("drum")) == (3, "drum", 1)
    assert kept.words.memory_columns(PARTITION, "u1").documents == 1


def test_turn_or_edit_in_an_undeclared_mode_is_refused_without_trace(kept: RememberHarness) -> None:
    with pytest.raises(Rejected, match="unknown_mode"):
        kept.tell("violin", 3, mode="journal")
    assert list(kept.memories.all()) == []
    before = kept.memory(kept.tell("violin", 4))
    with pytest.raises(Rejected, match="unknown_mode"):
        kept.tell("cello", 5, mode="journal")
    assert list(kept.memories.all()) == [before]
    assert (kept.finds("violin"), kept.finds("cello")) == (1, 0)


def test_a_duplicate_stays_one_when_its_mode_is_gone(kept: RememberHarness) -> None:
    kept.tell("violin", 3)
    assert kept.tell("violin", 4, mode="a-mode-of-the-past").result.duplicate


def test_the_same_turn_of_another_user_is_another_memory(kept: RememberHarness) -> None:
    mine = kept.tell("violin", 3)
    theirs = kept.keeper.turn(turn("violin", turn_id="t", scope={"user_id": "u2"}), record(offset=4))
    assert theirs.result.memory_id != mine.result.memory_id
    assert not theirs.result.duplicate


def test_a_turn_that_a_full_disk_refused_is_new_when_it_is_tried_again(kept: RememberHarness) -> None:
    kept.words.full = True
    with pytest.raises(Unavailable):
        kept.tell("violin", 3)
    kept.words.full = False
    told = kept.tell("violin", 3)
    assert (told.result.duplicate, kept.finds("violin")) == (False, 1)
    assert told.event is not None


def test_a_turn_has_the_mode_that_its_caller_names_and_fades_as_that_does(kept: RememberHarness) -> None:
    kept.modes.declare(CODE, boundary="u1", partition=PARTITION)
    told = kept.tell("violin", 3, mode="code")
    assert (told.result.mode, told.result.mode_source, kept.memory(told).decay) == ("code", "caller", "slow")
    kept.modes.put(PARTITION, "u1", kept.modes.get(PARTITION, "u1").model_copy(update={"user_default": "code"}))
    told = kept.tell("cello", 4, turn_id="other")
    assert (told.result.mode, told.result.mode_source) == ("code", "user_default")


def test_what_somebody_else_declared_is_not_declared(kept: RememberHarness) -> None:
    kept.modes.declare(CODE, boundary="u2", partition=PARTITION)
    with pytest.raises(Rejected, match="unknown_mode"):
        kept.tell("violin", 3, mode="code")


def test_a_turn_that_a_model_is_to_read_says_so(kept: RememberHarness) -> None:
    assert kept.memory(kept.tell("violin", 3)).reading.status == "rules"
    stores = fake_stores(kept.words, kept.memories, kept.modes).at(PARTITION)
    kept.keeper = remember_over(stores, kept.embedders, asks_model=True)
    told = kept.tell("cello", 4)
    assert kept.memory(told).reading.status == "pending"
    assert list(kept.words.awaiting_understanding(PARTITION)) == [told.result.memory_id]


@pytest.mark.parametrize("text", ["violin", "cello"])
def test_a_turn_that_was_forgotten_stays_so_and_leaves_no_trace(kept: RememberHarness, text: str) -> None:
    forgotten = kept.tell("violin", 3).result.memory_id
    kept.words.remove(PARTITION, forgotten)
    kept.memories.forget(PARTITION, forgotten)
    again = kept.tell(text, 4, mode="a-mode-of-the-past")
    assert (again.forgotten, again.event, again.result.memory_id) == (True, None, forgotten)
    assert (list(kept.memories.all()), kept.finds("violin"), kept.finds("cello")) == ([], 0, 0)
