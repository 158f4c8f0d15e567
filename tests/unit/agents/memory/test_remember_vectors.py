"""`Remember`: reports of vectors, and requests to make or remove them."""

import pytest

from schemas.failures import Unavailable
from schemas.internal.events import Forgotten, Remembered
from schemas.state.interaction import Interaction
from schemas.state.memories import VectorLocation
from schemas.state.modes import GENERAL, GENERAL_MODE
from tests.builders.stores import fake_stores, remember_over
from tests.fakes.tables.memories import FakeMemories
from tests.harnesses.remember import CODE, NOW, PARTITION, RememberHarness


def test_reported_vector_marks_its_memory_ready(harness: RememberHarness) -> None:
    accepted = harness.say("violin", 3)
    assert harness.report_embedded(accepted) is None
    embedding = harness.memory(accepted).embedding
    assert embedding.status == "ready"
    assert embedding.space == harness.space_digest()
    assert embedding.embedded_at == NOW
    assert embedding.error is None
    assert harness.ready_places() == {VectorLocation(mode=GENERAL, space=harness.space_digest()): 1}


def test_vector_that_could_not_be_made_is_failed_with_the_reason(harness: RememberHarness) -> None:
    accepted = harness.say("violin", 3)
    assert harness.report_embedded(accepted, "failed") is None
    assert harness.memory(accepted).embedding.status == "failed"
    assert harness.memory(accepted).embedding.error == "a reason"
    assert harness.ready_places() == {}
    assert harness.count_postings("violin") == 1


def test_missing_vector_is_requested_again(harness: RememberHarness) -> None:
    accepted = harness.say("violin", 3)
    harness.report_embedded(accepted)
    again = harness.report_embedded(accepted, "stale")
    assert again == Remembered(memory=harness.memory(accepted))
    assert harness.memory(accepted).embedding.status == "pending"
    assert harness.ready_places() == {}


def test_stale_embedded_event_does_not_mark_ready(harness: RememberHarness) -> None:
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
    assert harness.memory(new).embedding.status == "pending"
    assert harness.ready_places() == {}


def test_report_from_before_a_text_came_back_does_not_mark_ready(harness: RememberHarness) -> None:
    """The index may hold the vector of the text between by now."""
    first = harness.say("violin", 3)
    harness.say("cello", 4)
    restored = harness.say("violin", 5)
    assert harness.report_embedded(first) is None
    assert harness.memory(restored).embedding.status == "pending"
    assert harness.report_embedded(restored) is None
    assert harness.memory(restored).embedding.status == "ready"


def test_report_of_an_unknown_memory_changes_nothing(harness: RememberHarness) -> None:
    accepted = harness.say("violin", 3)
    memories = FakeMemories()
    harness.agent = remember_over(fake_stores(harness.words, memories, harness.modes).at(PARTITION), harness.embedders)
    assert isinstance(harness.report_embedded(accepted), Forgotten), "a vector without a record is removed"
    assert harness.report_embedded(accepted, "failed") is None
    assert list(memories.all()) == []


def test_vector_is_requested_after_a_full_disk(harness: RememberHarness) -> None:
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


def test_edit_keeps_mode_and_vector_location(harness: RememberHarness) -> None:
    harness.modes.declare(CODE, boundary="u1", partition=PARTITION)
    harness.report_embedded(harness.say("violin", 3, mode="code"))
    edited = harness.say("cello", 4)
    assert edited.result.mode == "code"
    assert edited.result.mode_source == "caller"
    assert harness.memory(edited).embedding.status == "pending"
    assert harness.memory(edited).embedding.place == place(harness, "code")


def test_late_vector_of_a_forgotten_memory_is_removed(harness: RememberHarness) -> None:
    accepted = harness.say("violin", 3)
    harness.memories.forget(PARTITION, accepted.result.memory_id)
    assert harness.report_embedded(accepted) == Forgotten(memory_id=accepted.result.memory_id, places=(place(harness),))
    assert harness.report_embedded(accepted, "failed") is None


def test_vector_overtaken_by_a_move_is_removed(harness: RememberHarness) -> None:
    harness.modes.declare(CODE, boundary="u1", partition=PARTITION)
    accepted = harness.say("violin", 3)
    moved = harness.memory(accepted).model_copy(update={"mode": "code"})
    harness.memories.put(PARTITION, moved)
    assert harness.report_embedded(accepted) == Remembered(memory=moved, strays=(place(harness),))
    assert harness.memory(accepted) == moved
    assert harness.report_embedded(accepted, "failed") is None
    assert harness.report_embedded(accepted, "waiting") is None


def test_vector_of_yesterdays_embedder_is_removed_and_made_again(harness: RememberHarness) -> None:
    accepted = harness.say("violin", 3)
    again = harness.report_embedded(accepted, space="yesterdays")
    assert again == Remembered(
        memory=harness.memory(accepted), strays=(VectorLocation(mode=GENERAL, space="yesterdays"),)
    )
    assert harness.memory(accepted).embedding.status == "pending"
    assert harness.ready_places() == {}


def test_memory_waits_for_a_missing_model_with_a_reason(harness: RememberHarness) -> None:
    accepted = harness.say("violin", 3)
    harness.embedders.missing(GENERAL)
    assert harness.report_embedded(accepted, "waiting") is None
    assert harness.memory(accepted).embedding.status == "pending"
    assert harness.memory(accepted).embedding.error == "a reason"


def test_outdated_waiting_report_requests_the_vector(harness: RememberHarness) -> None:
    accepted = harness.say("violin", 3)
    assert harness.report_embedded(accepted, "waiting") == Remembered(memory=harness.memory(accepted))
    assert harness.memory(accepted).embedding.error is None


def test_pending_vector_counts_without_the_model(harness: RememberHarness) -> None:
    accepted = harness.say("violin", 3)
    harness.embedders.missing(GENERAL)
    assert harness.report_embedded(accepted) is None
    assert harness.memory(accepted).embedding.status == "ready"


@pytest.mark.parametrize("waits_by", ["stale", "waiting"])
def test_late_vector_of_another_model_does_not_mark_ready(harness: RememberHarness, waits_by: str) -> None:
    accepted = harness.say("violin", 3)
    harness.embedders.missing(GENERAL)
    change = {"status": "stale"} if waits_by == "stale" else {"error": "no model"}
    memory = harness.memory(accepted)
    waits = memory.model_copy(update={"embedding": memory.embedding.model_copy(update=change)})
    harness.memories.put(PARTITION, waits)
    yesterdays = VectorLocation(mode=GENERAL, space="yesterdays")
    assert harness.report_embedded(accepted, space="yesterdays") == Remembered(memory=waits, strays=(yesterdays,))
    assert harness.report_embedded(accepted, "failed", space="yesterdays") is None
    assert harness.memory(accepted) == waits


def test_vector_in_a_new_space_removes_the_old_one(harness: RememberHarness) -> None:
    accepted = harness.say("violin", 3)
    harness.report_embedded(accepted)
    harness.modes.declare(GENERAL_MODE.model_copy(update={"embedder": "tiny32"}), boundary="u1", partition=PARTITION)
    before = harness.memory(accepted).embedding.place
    again = harness.report_embedded(accepted, space=harness.space_digest())
    assert before is not None
    assert before.space != harness.space_digest()
    assert again == Remembered(memory=harness.memory(accepted), strays=(before,))
    assert harness.memory(accepted).embedding.place == place(harness)


def test_interaction_mode_is_stored_with_the_vector(harness: RememberHarness) -> None:
    accepted = harness.say("violin", 3)
    read = Interaction(mode="LEARNING", confidence=0.8)
    harness.report_embedded(accepted, interaction=read)
    assert harness.memory(accepted).reading.interaction == read
    assert harness.memory(accepted).embedding.status == "ready"
    harness.report_embedded(accepted)
    assert harness.memory(accepted).reading.interaction == read


def test_interaction_mode_of_a_replaced_text_is_ignored(harness: RememberHarness) -> None:
    old = harness.say("violin", 3)
    harness.say("cello", 4)
    harness.report_embedded(old, interaction=Interaction(mode="LEARNING", confidence=0.8))
    assert harness.memory(old).reading.interaction is None
