"""`Remember`: reports of vectors, and requests to make or remove them."""

import pytest

from schemas.failures import Unavailable
from schemas.internal.events import Forgotten, Remembered
from schemas.state.interaction import Interaction
from schemas.state.memories import VectorLocation
from schemas.state.modes import GENERAL, GENERAL_MODE
from tests.builders.stores import fake_stores, remember_over
from tests.fakes.tables.memories import FakeMemories
from tests.harnesses.turns import CODE, NOW, PARTITION, RememberHarness


def test_a_vector_that_is_in_the_index_makes_its_memory_ready(harness: RememberHarness) -> None:
    told = harness.say("violin", 3)
    assert harness.report_embedded(told) is None
    embedding = harness.memory(told).embedding
    assert (embedding.status, embedding.space) == ("ready", harness.space_digest())
    assert (embedding.embedded_at, embedding.error) == (NOW, None)
    assert harness.ready_places() == {VectorLocation(mode=GENERAL, space=harness.space_digest()): 1}


def test_a_vector_that_could_not_be_made_is_failed_with_the_reason(harness: RememberHarness) -> None:
    told = harness.say("violin", 3)
    assert harness.report_embedded(told, "failed") is None
    assert (harness.memory(told).embedding.status, harness.memory(told).embedding.error) == ("failed", "a reason")
    assert (harness.ready_places(), harness.count_postings("violin")) == ({}, 1)


def test_a_vector_that_is_missing_is_asked_for_again(harness: RememberHarness) -> None:
    told = harness.say("violin", 3)
    harness.report_embedded(told)
    again = harness.report_embedded(told, "stale")
    assert again == Remembered(memory=harness.memory(told))
    assert (harness.memory(told).embedding.status, harness.ready_places()) == ("pending", {})


def test_the_vector_of_a_replaced_text_does_not_make_the_new_one_ready(harness: RememberHarness) -> None:
    old = harness.say("violin", 3)
    new = harness.say("cello", 4)
    again = harness.report_embedded(old)
    assert again == Remembered(
        memory=harness.memory(new), strays=(VectorLocation(mode=GENERAL, space=harness.space_digest()),)
    )
    assert harness.memory(new).embedding.status == "pending"
    assert harness.report_embedded(new) is None
    assert harness.memory(new).embedding.status == "ready"


def test_old_vector_written_over_the_new_one_is_embedded_again(harness: RememberHarness) -> None:
    old = harness.say("violin", 3)
    new = harness.say("cello", 4)
    harness.report_embedded(new)
    again = harness.report_embedded(old)
    assert isinstance(again, Remembered)
    assert again.memory.text == "cello"
    assert (harness.memory(new).embedding.status, harness.ready_places()) == ("pending", {})


def test_news_of_a_memory_that_is_not_here_changes_nothing(harness: RememberHarness) -> None:
    told = harness.say("violin", 3)
    memories = FakeMemories()
    harness.agent = remember_over(fake_stores(harness.words, memories, harness.modes).at(PARTITION), harness.embedders)
    assert isinstance(harness.report_embedded(told), Forgotten), "a vector that no record knows of is removed"
    assert harness.report_embedded(told, "failed") is None
    assert list(memories.all()) == []


def test_a_vector_is_asked_for_although_the_disk_was_full_the_first_time(harness: RememberHarness) -> None:
    old = harness.say("violin", 3)
    new = harness.say("cello", 4)
    harness.report_embedded(new)
    harness.words.full = True
    with pytest.raises(Unavailable):
        harness.report_embedded(old)
    harness.words.full = False
    assert harness.report_embedded(old) is not None


def place(harness: RememberHarness, mode: str = GENERAL) -> VectorLocation:
    return VectorLocation(mode=mode, space=harness.space_digest(mode))


def test_an_edit_keeps_its_mode_and_the_place_of_its_vector(harness: RememberHarness) -> None:
    harness.modes.declare(CODE, boundary="u1", partition=PARTITION)
    harness.report_embedded(harness.say("violin", 3, mode="code"))
    edited = harness.say("cello", 4)
    assert (edited.result.mode, edited.result.mode_source) == ("code", "caller")
    assert (harness.memory(edited).embedding.status, harness.memory(edited).embedding.place) == (
        "pending",
        place(harness, "code"),
    )


def test_the_vector_of_a_forgotten_memory_is_removed_when_it_comes_late(harness: RememberHarness) -> None:
    told = harness.say("violin", 3)
    harness.memories.forget(PARTITION, told.result.memory_id)
    assert harness.report_embedded(told) == Forgotten(memory_id=told.result.memory_id, places=(place(harness),))
    assert harness.report_embedded(told, "failed") is None


def test_a_vector_that_was_overtaken_by_a_move_is_removed(harness: RememberHarness) -> None:
    harness.modes.declare(CODE, boundary="u1", partition=PARTITION)
    told = harness.say("violin", 3)
    there = harness.memory(told).model_copy(update={"mode": "code"})
    harness.memories.put(PARTITION, there)
    assert harness.report_embedded(told) == Remembered(memory=there, strays=(place(harness),))
    assert harness.memory(told) == there
    assert harness.report_embedded(told, "failed") is None
    assert harness.report_embedded(told, "waiting") is None


def test_a_vector_of_yesterdays_embedder_is_removed_and_made_again(harness: RememberHarness) -> None:
    told = harness.say("violin", 3)
    again = harness.report_embedded(told, space="yesterdays")
    assert again == Remembered(memory=harness.memory(told), strays=(VectorLocation(mode=GENERAL, space="yesterdays"),))
    assert (harness.memory(told).embedding.status, harness.ready_places()) == ("pending", {})


def test_a_memory_waits_for_a_model_that_is_not_here_and_says_why(harness: RememberHarness) -> None:
    told = harness.say("violin", 3)
    harness.embedders.missing(GENERAL)
    assert harness.report_embedded(told, "waiting") is None
    assert (harness.memory(told).embedding.status, harness.memory(told).embedding.error) == ("pending", "a reason")


def test_a_model_that_came_while_its_absence_was_told_is_asked_at_once(harness: RememberHarness) -> None:
    told = harness.say("violin", 3)
    assert harness.report_embedded(told, "waiting") == Remembered(memory=harness.memory(told))
    assert harness.memory(told).embedding.error is None


def test_without_the_model_a_vector_that_was_on_its_way_counts(harness: RememberHarness) -> None:
    told = harness.say("violin", 3)
    harness.embedders.missing(GENERAL)
    assert harness.report_embedded(told) is None
    assert harness.memory(told).embedding.status == "ready"


@pytest.mark.parametrize("waits_by", ["stale", "waiting"])
def test_late_vector_of_another_model_is_not_taken_for_the_awaited_one(harness: RememberHarness, waits_by: str) -> None:
    told = harness.say("violin", 3)
    harness.embedders.missing(GENERAL)
    change = {"status": "stale"} if waits_by == "stale" else {"error": "no model"}
    memory = harness.memory(told)
    waits = memory.model_copy(update={"embedding": memory.embedding.model_copy(update=change)})
    harness.memories.put(PARTITION, waits)
    yesterdays = VectorLocation(mode=GENERAL, space="yesterdays")
    assert harness.report_embedded(told, space="yesterdays") == Remembered(memory=waits, strays=(yesterdays,))
    assert harness.report_embedded(told, "failed", space="yesterdays") is None
    assert harness.memory(told) == waits


def test_a_vector_that_nobody_expected_has_the_one_before_removed(harness: RememberHarness) -> None:
    told = harness.say("violin", 3)
    harness.report_embedded(told)
    harness.modes.declare(GENERAL_MODE.model_copy(update={"embedder": "tiny32"}), boundary="u1", partition=PARTITION)
    before = harness.memory(told).embedding.place
    again = harness.report_embedded(told, space=harness.space_digest())
    assert before is not None
    assert before.space != harness.space_digest()
    assert again == Remembered(memory=harness.memory(told), strays=(before,))
    assert harness.memory(told).embedding.place == place(harness)


def test_what_a_turn_is_for_is_noted_with_its_vector(harness: RememberHarness) -> None:
    told = harness.say("violin", 3)
    read = Interaction(mode="LEARNING", confidence=0.8)
    harness.report_embedded(told, interaction=read)
    assert (harness.memory(told).reading.interaction, harness.memory(told).embedding.status) == (read, "ready")
    harness.report_embedded(told)
    assert harness.memory(told).reading.interaction == read


def test_what_a_replaced_text_was_for_is_not_noted(harness: RememberHarness) -> None:
    old = harness.say("violin", 3)
    harness.say("cello", 4)
    harness.report_embedded(old, interaction=Interaction(mode="LEARNING", confidence=0.8))
    assert harness.memory(old).reading.interaction is None
