"""Corrected interaction modes, and the counts of classifications and corrections."""

from datetime import timedelta
from typing import Any

import pytest
from modestream_client.vocabulary import InteractionMode

from agents.memory.remember import TurnResult
from agents.memory.write_memory import finish
from schemas.internal.changes import Change
from schemas.internal.events import Understood
from schemas.moments import week_of
from schemas.scopes import Scope
from schemas.state.interaction import Interaction, InteractionCounts
from schemas.state.memories import Memory, hash_texts
from schemas.state.understanding import Understanding
from tests.builders.turns import record, turn
from tests.harnesses.remember import NOW, PARTITION, RememberHarness

TASK = Interaction(mode="TASK", confidence=0.9)
CORRECTED = Interaction(mode="LEARNING", confidence=1.0)
SCOPE = Scope(user_id="u1", project_id="p1")


def classified(harness: RememberHarness, said: TurnResult, interaction: Interaction = TASK, **changes: Any) -> Memory:
    """Report a classification beside the vector; return the stored memory."""
    harness.report_embedded(said, interaction=interaction, **changes)
    return harness.memory(said)


def correct(harness: RememberHarness, memory: Memory, mode: InteractionMode = "LEARNING", **fields: Any) -> list[Any]:
    known: dict[str, Any] = {"scope": SCOPE, "action": "correct", "memory_id": memory.memory_id, "at": NOW}
    return list(harness.agent.changed(Change(interaction_mode=mode, **(known | fields))))


def counts(harness: RememberHarness) -> InteractionCounts:
    return harness.interactions.get(PARTITION)


def understood(memory: Memory, **fields: Any) -> Understood:
    known: dict[str, Any] = {"memory_id": memory.memory_id, "text_hash": memory.versions[memory.current].text_hash}
    return Understood(**(known | {"profile": "p", "prompt": "understand-1", "at": NOW} | fields))


def test_correction_replaces_the_classifiers_answer(harness: RememberHarness) -> None:
    said = harness.say("violin", 1)
    before = classified(harness, said)
    [(corrected, events)] = correct(harness, before)
    assert events == ()
    assert corrected == harness.memory(said)
    assert corrected.reading.interaction == CORRECTED
    assert corrected.embedding == before.embedding, "it needs no new vector"


def test_repeated_correction_writes_nothing(harness: RememberHarness) -> None:
    said = harness.say("violin", 1)
    [(corrected, _)] = correct(harness, classified(harness, said))
    writes = harness.interactions.writes
    [(again, _)] = correct(harness, corrected)
    assert again == corrected
    assert harness.interactions.writes == writes


def test_last_correction_holds(harness: RememberHarness) -> None:
    said = harness.say("violin", 1)
    memory = classified(harness, said)
    correct(harness, memory)
    correct(harness, memory, "DEBUGGING")
    assert harness.memory(said).reading.interaction == Interaction(mode="DEBUGGING", confidence=1.0)


def test_late_classification_does_not_undo_a_correction(harness: RememberHarness) -> None:
    said = harness.say("violin", 1)
    correct(harness, harness.memory(said))
    assert classified(harness, said).reading.interaction == CORRECTED
    assert harness.memory(said).embedding.status == "ready"


def test_late_answer_of_a_model_does_not_undo_a_correction(harness: RememberHarness) -> None:
    said = harness.say("violin", 1)
    correct(harness, classified(harness, said))
    answer = understood(harness.memory(said), interaction=TASK, found=Understanding(topic="music"))
    for _ in range(2):
        finish(harness.agent.understood(answer))
        assert harness.memory(said).reading.interaction == CORRECTED
    assert harness.memory(said).reading.topic == "music"
    classified(harness, said)
    assert harness.memory(said).reading.interaction == CORRECTED


def test_replayed_turn_keeps_the_correction_and_an_edit_drops_it(harness: RememberHarness) -> None:
    said = harness.say("violin", 1)
    correct(harness, classified(harness, said))
    for offset in (1, 2):
        finish(harness.agent.turn(turn("violin", turn_id="t"), record(offset=offset)))
        assert harness.memory(said).reading.interaction == CORRECTED
    edited = harness.say("cello", 3)
    assert harness.memory(edited).reading.interaction is None
    assert classified(harness, edited).reading.interaction == TASK


def test_moved_memory_keeps_its_correction(harness: RememberHarness) -> None:
    said = harness.say("violin", 1)
    correct(harness, classified(harness, said))
    list(harness.agent.changed(Change(scope=SCOPE, action="move", memory_id=said.result.memory_id, to="general")))
    assert harness.memory(said).reading.interaction == CORRECTED


@pytest.mark.parametrize("scope", [Scope(user_id="u2", project_id="p1"), Scope(user_id="u1", project_id="p2")])
def test_correction_from_another_scope_changes_nothing(harness: RememberHarness, scope: Scope) -> None:
    said = harness.say("violin", 1)
    before = classified(harness, said)
    assert correct(harness, before, scope=scope) == []
    assert harness.memory(said) == before
    assert counts(harness).latest.corrected == ()


def test_correction_of_a_memory_forgotten_meanwhile_does_nothing(harness: RememberHarness) -> None:
    said = harness.say("violin", 1)
    memory = classified(harness, said)
    list(harness.agent.changed(Change(scope=SCOPE, action="forget", memory_id=memory.memory_id)))
    assert correct(harness, memory) == []
    assert harness.memories.is_forgotten(PARTITION, memory.memory_id)


def test_user_counts_once_with_the_first_classified_turn(harness: RememberHarness) -> None:
    for number, mode in enumerate(("TASK", "LEARNING", "GENERAL")):
        said = harness.say(f"violin {number}", number, turn_id=f"t-{number}")
        classified(harness, said, Interaction(mode=mode, confidence=0.8))
    assert list(counts(harness).latest.modes.values()) == ["TASK"]
    assert counts(harness).latest.week == week_of(NOW)
    assert harness.interactions.writes == 1


def test_turn_is_counted_once_and_a_new_week_keeps_the_last_ones_totals(harness: RememberHarness) -> None:
    said = harness.say("violin", 1)
    classified(harness, said)
    classified(harness, said, at=NOW + timedelta(days=7))
    assert counts(harness).latest.week == week_of(NOW), "it was classified before"
    classified(harness, harness.say("cello", 2, turn_id="t-2"), at=NOW + timedelta(days=7))
    assert counts(harness).latest.week == week_of(NOW) + 1
    assert counts(harness).before.modes == {"TASK": 1}


def test_models_first_answer_is_counted(harness: RememberHarness) -> None:
    said = harness.say("violin", 1)
    finish(harness.agent.understood(understood(harness.memory(said), interaction=TASK, found=Understanding())))
    assert list(counts(harness).latest.modes.values()) == ["TASK"]


def test_only_a_wrong_classification_counts_as_corrected(harness: RememberHarness) -> None:
    said = harness.say("violin", 1)
    correct(harness, harness.memory(said))
    assert counts(harness).latest.corrected == (), "nothing was classified"
    other = harness.say("cello", 2, turn_id="t-2")
    memory = classified(harness, other)
    correct(harness, memory, "TASK")
    assert counts(harness).latest.corrected == (), "a confirmation"
    correct(harness, harness.memory(other), "DEBUGGING")
    assert counts(harness).latest.corrected == (), "the user's own answer is replaced"
    third = harness.say("harp", 3, turn_id="t-3")
    correct(harness, classified(harness, third))
    assert counts(harness).latest.corrected == (hash_texts(["u1"])[:12],)


def test_forgetting_and_moving_are_no_corrections(harness: RememberHarness) -> None:
    for number in range(12):
        memory = classified(harness, harness.say(f"violin {number}", number, turn_id=f"t-{number}"))
        list(harness.agent.changed(Change(scope=SCOPE, action="move", memory_id=memory.memory_id, to="general")))
        list(harness.agent.changed(Change(scope=SCOPE, action="forget", memory_id=memory.memory_id)))
    assert counts(harness).latest.corrected == ()


def test_embedded_event_without_an_interaction_mode_counts_nothing(harness: RememberHarness) -> None:
    said = harness.say("violin", 1)
    harness.report_embedded(said)
    assert counts(harness) == InteractionCounts()
