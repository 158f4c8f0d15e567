"""The keeper of memories: what it makes of the indexer's news, and which vectors it has made again or removed."""

import pytest

from schemas.failures import Unavailable
from schemas.internal.events import Forgotten, Remembered
from schemas.state.interaction import Interaction
from schemas.state.memories import VectorLocation
from schemas.state.modes import GENERAL, GENERAL_MODE
from tests.builders.stores import fake_stores, remember_over
from tests.fakes.tables.memories import FakeMemories
from tests.harnesses.turns import CODE, NOW, PARTITION, RememberHarness


def test_a_vector_that_is_in_the_index_makes_its_memory_ready(kept: RememberHarness) -> None:
    told = kept.tell("violin", 3)
    assert kept.embedded(told) is None
    embedding = kept.memory(told).embedding
    assert (embedding.status, embedding.space) == ("ready", kept.space())
    assert (embedding.embedded_at, embedding.error) == (NOW, None)
    assert kept.ready() == {VectorLocation(mode=GENERAL, space=kept.space()): 1}


def test_a_vector_that_could_not_be_made_is_failed_with_the_reason(kept: RememberHarness) -> None:
    told = kept.tell("violin", 3)
    assert kept.embedded(told, "failed") is None
    assert (kept.memory(told).embedding.status, kept.memory(told).embedding.error) == ("failed", "a reason")
    assert (kept.ready(), kept.finds("violin")) == ({}, 1)


def test_a_vector_that_is_missing_is_asked_for_again(kept: RememberHarness) -> None:
    told = kept.tell("violin", 3)
    kept.embedded(told)
    again = kept.embedded(told, "stale")
    assert again == Remembered(memory=kept.memory(told))
    assert (kept.memory(told).embedding.status, kept.ready()) == ("pending", {})


def test_the_vector_of_a_replaced_text_does_not_make_the_new_one_ready(kept: RememberHarness) -> None:
    old = kept.tell("violin", 3)
    new = kept.tell("cello", 4)
    again = kept.embedded(old)
    assert again == Remembered(memory=kept.memory(new), strays=(VectorLocation(mode=GENERAL, space=kept.space()),))
    assert kept.memory(new).embedding.status == "pending"
    assert kept.embedded(new) is None
    assert kept.memory(new).embedding.status == "ready"


def test_old_vector_written_over_the_new_one_is_embedded_again(kept: RememberHarness) -> None:
    old = kept.tell("violin", 3)
    new = kept.tell("cello", 4)
    kept.embedded(new)
    again = kept.embedded(old)
    assert isinstance(again, Remembered)
    assert again.memory.text == "cello"
    assert (kept.memory(new).embedding.status, kept.ready()) == ("pending", {})


def test_news_of_a_memory_that_is_not_here_changes_nothing(kept: RememberHarness) -> None:
    told = kept.tell("violin", 3)
    memories = FakeMemories()
    kept.keeper = remember_over(fake_stores(kept.words, memories, kept.modes).at(PARTITION), kept.embedders)
    assert isinstance(kept.embedded(told), Forgotten), "a vector that no record knows of is removed"
    assert kept.embedded(told, "failed") is None
    assert list(memories.all()) == []


def test_a_vector_is_asked_for_although_the_disk_was_full_the_first_time(kept: RememberHarness) -> None:
    old = kept.tell("violin", 3)
    new = kept.tell("cello", 4)
    kept.embedded(new)
    kept.words.full = True
    with pytest.raises(Unavailable):
        kept.embedded(old)
    kept.words.full = False
    assert kept.embedded(old) is not None


def place(kept: RememberHarness, mode: str = GENERAL) -> VectorLocation:
    return VectorLocation(mode=mode, space=kept.space(mode))


def test_an_edit_keeps_its_mode_and_the_place_of_its_vector(kept: RememberHarness) -> None:
    kept.modes.declare(CODE, boundary="u1", partition=PARTITION)
    kept.embedded(kept.tell("violin", 3, mode="code"))
    edited = kept.tell("cello", 4)
    assert (edited.result.mode, edited.result.mode_source) == ("code", "caller")
    assert (kept.memory(edited).embedding.status, kept.memory(edited).embedding.place) == (
        "pending",
        place(kept, "code"),
    )


def test_the_vector_of_a_forgotten_memory_is_removed_when_it_comes_late(kept: RememberHarness) -> None:
    told = kept.tell("violin", 3)
    kept.memories.forget(PARTITION, told.result.memory_id)
    assert kept.embedded(told) == Forgotten(memory_id=told.result.memory_id, places=(place(kept),))
    assert kept.embedded(told, "failed") is None


def test_a_vector_that_was_overtaken_by_a_move_is_removed(kept: RememberHarness) -> None:
    kept.modes.declare(CODE, boundary="u1", partition=PARTITION)
    told = kept.tell("violin", 3)
    there = kept.memory(told).model_copy(update={"mode": "code"})
    kept.memories.put(PARTITION, there)
    assert kept.embedded(told) == Remembered(memory=there, strays=(place(kept),))
    assert kept.memory(told) == there
    assert kept.embedded(told, "failed") is None
    assert kept.embedded(told, "waiting") is None


def test_a_vector_of_yesterdays_embedder_is_removed_and_made_again(kept: RememberHarness) -> None:
    told = kept.tell("violin", 3)
    again = kept.embedded(told, space="yesterdays")
    assert again == Remembered(memory=kept.memory(told), strays=(VectorLocation(mode=GENERAL, space="yesterdays"),))
    assert (kept.memory(told).embedding.status, kept.ready()) == ("pending", {})


def test_a_memory_waits_for_a_model_that_is_not_here_and_says_why(kept: RememberHarness) -> None:
    told = kept.tell("violin", 3)
    kept.embedders.missing(GENERAL)
    assert kept.embedded(told, "waiting") is None
    assert (kept.memory(told).embedding.status, kept.memory(told).embedding.error) == ("pending", "a reason")


def test_a_model_that_came_while_its_absence_was_told_is_asked_at_once(kept: RememberHarness) -> None:
    told = kept.tell("violin", 3)
    assert kept.embedded(told, "waiting") == Remembered(memory=kept.memory(told))
    assert kept.memory(told).embedding.error is None


def test_without_the_model_a_vector_that_was_on_its_way_counts(kept: RememberHarness) -> None:
    told = kept.tell("violin", 3)
    kept.embedders.missing(GENERAL)
    assert kept.embedded(told) is None
    assert kept.memory(told).embedding.status == "ready"


@pytest.mark.parametrize("waits_by", ["stale", "waiting"])
def test_late_vector_of_another_model_is_not_taken_for_the_awaited_one(kept: RememberHarness, waits_by: str) -> None:
    told = kept.tell("violin", 3)
    kept.embedders.missing(GENERAL)
    change = {"status": "stale"} if waits_by == "stale" else {"error": "no model"}
    memory = kept.memory(told)
    waits = memory.model_copy(update={"embedding": memory.embedding.model_copy(update=change)})
    kept.memories.put(PARTITION, waits)
    yesterdays = VectorLocation(mode=GENERAL, space="yesterdays")
    assert kept.embedded(told, space="yesterdays") == Remembered(memory=waits, strays=(yesterdays,))
    assert kept.embedded(told, "failed", space="yesterdays") is None
    assert kept.memory(told) == waits


def test_a_vector_that_nobody_expected_has_the_one_before_removed(kept: RememberHarness) -> None:
    told = kept.tell("violin", 3)
    kept.embedded(told)
    kept.modes.declare(GENERAL_MODE.model_copy(update={"embedder": "tiny32"}), boundary="u1", partition=PARTITION)
    before = kept.memory(told).embedding.place
    again = kept.embedded(told, space=kept.space())
    assert before is not None
    assert before.space != kept.space()
    assert again == Remembered(memory=kept.memory(told), strays=(before,))
    assert kept.memory(told).embedding.place == place(kept)


def test_what_a_turn_is_for_is_noted_with_its_vector(kept: RememberHarness) -> None:
    told = kept.tell("violin", 3)
    read = Interaction(mode="LEARNING", confidence=0.8)
    kept.embedded(told, interaction=read)
    assert (kept.memory(told).reading.interaction, kept.memory(told).embedding.status) == (read, "ready")
    kept.embedded(told)
    assert kept.memory(told).reading.interaction == read


def test_what_a_replaced_text_was_for_is_not_noted(kept: RememberHarness) -> None:
    old = kept.tell("violin", 3)
    kept.tell("cello", 4)
    kept.embedded(old, interaction=Interaction(mode="LEARNING", confidence=0.8))
    assert kept.memory(old).reading.interaction is None
