"""Merging a model's understanding into that of the rules."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agents.rules.memory.understanding import (
    MAX_MEMORY_ENTITIES,
    UNANSWERABLE_PROFILE,
    ModelAndPrompt,
    current_text_hash,
    is_about_current_text,
    is_covered,
    is_due_by_model,
    is_of_earlier_revision,
    needs_understanding,
    with_interaction,
    with_understanding,
)
from schemas.internal.changes import Job
from schemas.internal.events import Understood
from schemas.scopes import Scope
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory, TurnUnderstanding
from schemas.state.understanding import Understanding
from tests.builders.memories import START, made

TASK = Interaction(mode="TASK", confidence=0.9)
LEARNING = Interaction(mode="LEARNING", confidence=0.8)
RULES = TurnUnderstanding(status="pending", text_hash="hash", intent="fix", times=("2026-03-01",), interaction=TASK)


def read(**found: Any) -> Understood:
    return answer(Understanding(**found))


def answer(found: Understanding | None, **fields: Any) -> Understood:
    known = {"memory_id": "m", "text_hash": "hash", "profile": "small", "prompt": "understand-1", "at": START}
    return Understood(**(known | fields), found=found)


def turn(**fields: Any) -> Memory:
    return made("Fix the login error.", **({"reading": RULES} | fields))


def test_model_answer_completes_the_rules() -> None:
    said = answer(Understanding(topic="login", operation="repair"), interaction=LEARNING)
    reading = with_understanding(turn(), said).reading
    assert reading.status == "model"
    assert reading.topic == "login"
    assert reading.intent == "fix"
    assert reading.operation == "repair"
    assert reading.times == ("2026-03-01",)
    assert reading.interaction == LEARNING
    assert reading.model == "small"
    assert reading.prompt == "understand-1"
    assert reading.text_hash == "hash"


def test_empty_answer_keeps_what_rules_found() -> None:
    memory = turn(entities=("Ana",))
    after = with_understanding(memory, read())
    assert after.entities == ("Ana",)
    assert after.reading.status == "model"
    assert after.reading.intent == "fix"
    assert after.reading.interaction == TASK


def test_invalid_answer_keeps_what_rules_found() -> None:
    after = with_understanding(turn(entities=("Ana",)), answer(None))
    assert after.entities == ("Ana",)
    assert after.reading == RULES.model_copy(update={"status": "rules", "model": "small", "prompt": "understand-1"})


def test_invalid_answer_keeps_an_earlier_valid_one() -> None:
    answered = with_understanding(turn(), read(topic="login"))
    assert with_understanding(answered, answer(None)) == answered


def test_repeated_answer_changes_nothing() -> None:
    said = read(topic="login", entities=("Bea", "Ana"))
    once = with_understanding(turn(entities=("Ana",)), said)
    assert with_understanding(once, said) == once


def test_model_entities_are_appended_without_repetitions() -> None:
    after = with_understanding(turn(entities=("Ana", "Köln")), read(entities=("ana", "KÖLN", "Bea", " ", "", "Bea")))
    assert after.entities == ("Ana", "Köln", "Bea")


def test_entities_are_bounded_and_rules_come_first() -> None:
    ours = tuple(f"ours {number}" for number in range(MAX_MEMORY_ENTITIES - 1))
    after = with_understanding(turn(entities=ours), read(entities=("Bea", "Cem", "Dora")))
    assert after.entities == (*ours, "Bea")


def test_interaction_by_rules_leaves_the_turn_pending() -> None:
    after = with_interaction(turn(reading=RULES.model_copy(update={"interaction": None})), LEARNING)
    assert after.reading.interaction == LEARNING
    assert after.reading.status == "pending"
    assert after.reading.intent == "fix"
    assert with_interaction(after, None) == after


def test_interaction_by_rules_after_the_model_is_ignored() -> None:
    answered = with_understanding(turn(), answer(Understanding(), interaction=LEARNING))
    assert with_interaction(answered, TASK) == answered


@pytest.mark.parametrize(
    ("fields", "needs"),
    [
        ({"reading": TurnUnderstanding()}, True),
        ({"reading": TurnUnderstanding(status="pending")}, True),
        ({"reading": RULES}, False),
        ({"reading": TurnUnderstanding(), "role": "assistant"}, False),
        ({"reading": TurnUnderstanding(), "role": "tool"}, False),
        ({"reading": TurnUnderstanding(), "role": None, "type": "semantic"}, False),
        ({"reading": TurnUnderstanding(), "type": "semantic"}, False),
    ],
)
def test_user_turns_are_classified_once(fields: dict[str, Any], needs: bool) -> None:
    assert needs_understanding(turn(**fields)) is needs


def test_answer_about_a_replaced_text_is_recognised() -> None:
    memory = turn()
    two = memory.versions[0].model_copy(update={"text_hash": "new"})
    edited = memory.model_copy(update={"versions": (*memory.versions, two), "current": 1})
    assert current_text_hash(memory) == "hash"
    assert current_text_hash(edited) == "new"
    assert is_about_current_text(memory, read())
    assert not is_about_current_text(edited, read())
    assert is_about_current_text(edited.model_copy(update={"current": 0}), read())


TODAY = ModelAndPrompt("fast", "understand-2")


def turn_read_by(**reading: Any) -> Memory:
    return made("tea", 1).model_copy(update={"reading": TurnUnderstanding(**reading)})


def job(**fields: Any) -> Job:
    scope = Scope(user_id="u1", project_id="p1")
    return Job(scope=scope, job_id="refresh-0-1", kind="refresh", started_at=datetime.now(UTC), **fields)


@pytest.mark.parametrize(
    ("reading", "is_due"),
    [
        ({}, True),
        ({"status": "model", "model": "fast", "prompt": "understand-2"}, False),
        ({"status": "model", "model": "slow", "prompt": "understand-2"}, True),
        ({"status": "model", "model": "fast", "prompt": "understand-1"}, True),
        ({"status": "model", "model": "fast", "prompt": "understand-1", "tried": "understand-2"}, False),
        ({"status": "model", "model": "fast", "prompt": "understand-0", "tried": "understand-1"}, True),
        ({"model": UNANSWERABLE_PROFILE, "prompt": "understand-2"}, False),
        ({"model": UNANSWERABLE_PROFILE, "prompt": "understand-1"}, True),
    ],
)
def test_turn_is_due_unless_todays_profile_and_prompt_have_been_asked(reading: dict[str, Any], is_due: bool) -> None:
    assert is_due_by_model(turn_read_by(**reading), TODAY) == is_due


def test_revision_decides_only_where_it_is_asked_for() -> None:
    found = [
        is_of_earlier_revision(turn_read_by(revision=3), job(before_revision=revision), 9) for revision in (None, 3, 4)
    ]
    assert found == [False, False, True]
    assert not is_of_earlier_revision(turn_read_by(revision=3), job(before_revision=99), 3), "no revision is later"


def test_turns_alone_are_covered_unless_they_await_an_answer() -> None:
    item = turn_read_by().model_copy(update={"origin": "extracted"})
    assert [is_covered(memory, job()) for memory in (turn_read_by(), turn_read_by(status="pending"), item)] == [
        True,
        False,
        False,
    ]
    assert not is_covered(turn_read_by(), job(mode="journal"))
    assert is_covered(turn_read_by(), job(mode=turn_read_by().mode))
