"""Which turns are due to be understood again."""

from datetime import UTC, datetime
from typing import Any

import pytest

from agents.rules.memory.refreshing import ModelAndPrompt, is_covered, is_due_by_model, is_of_earlier_revision
from agents.rules.memory.understanding import UNANSWERABLE_PROFILE
from schemas.internal.changes import Job
from schemas.scopes import Scope
from schemas.state.memories import Memory, TurnUnderstanding
from tests.builders.memories import made

TODAY = ModelAndPrompt("fast", "understand-2")


def turn(**reading: Any) -> Memory:
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
    assert is_due_by_model(turn(**reading), TODAY) == is_due


def test_revision_decides_only_where_it_is_asked_for() -> None:
    found = [is_of_earlier_revision(turn(revision=3), job(before_revision=one), 9) for one in (None, 3, 4)]
    assert found == [False, False, True]
    assert not is_of_earlier_revision(turn(revision=3), job(before_revision=99), 3), "no revision is later"


def test_turns_alone_are_covered_unless_they_await_an_answer() -> None:
    item = turn().model_copy(update={"origin": "extracted"})
    assert [is_covered(one, job()) for one in (turn(), turn(status="pending"), item)] == [True, False, False]
    assert not is_covered(turn(), job(mode="journal"))
    assert is_covered(turn(), job(mode=turn().mode))
