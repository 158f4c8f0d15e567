"""Figures over the questions of several users, as they are printed, and what a guard makes of them."""

from typing import Any

import pytest

from operations.compare import logged_turns
from operations.evaluate import Evaluation, printed, refusal_of

MEMORY: dict[str, Any] = {
    "memory_id": "m1",
    "turn_id": "t1",
    "scope": {"user_id": "u1", "project_id": "default"},
    "conversation_id": "c1",
    "mode": "general",
    "type": "episodic",
    "role": "user",
    "speaker": None,
    "text": "hello",
    "version": 1,
    "accepted_at": "2026-03-01T09:30:00Z",
}


def answer(current: float, other: float | None, questions: int = 20) -> dict[str, Any]:
    outcome: dict[str, Any] = {"memory_id": "m", "mode": "general", "current": [current] * 3}
    if other is not None:
        outcome["other"] = [other] * 3
    return {"revision": 2, "by": "rules", "budget_tokens": 2000, "degraded": 0, "outcomes": [outcome] * questions}


def test_questions_of_all_users_count_together() -> None:
    figures = Evaluation({"a": answer(1, None, 30), "b": answer(0, None, 10)}).report()
    assert figures["all"]["current"]["recall_at_10"] == 0.75


def test_worse_revision_is_refused_with_a_code() -> None:
    refusal = refusal_of(Evaluation({"a": answer(1, 0.5)}).report())
    assert refusal is not None
    assert refusal.startswith("worse_revision: recall@10 by -0.500")


@pytest.mark.parametrize(("current", "other"), [(0.5, 1), (1, 1)])
def test_better_and_equal_revisions_are_accepted(current: float, other: float) -> None:
    assert refusal_of(Evaluation({"a": answer(current, other)}).report()) is None


@pytest.mark.parametrize("questions", [0, 9])
def test_too_few_questions_are_refused_with_their_number(questions: int) -> None:
    refusal = refusal_of(Evaluation({"a": answer(1, 1, questions)}).report())
    assert refusal is not None
    assert refusal.startswith(f"too_few_questions: {questions} questions of 1 users, a verdict needs 10")


@pytest.mark.parametrize("questions", [0, 9])
def test_too_few_questions_are_accepted_where_allowed(questions: int) -> None:
    assert refusal_of(Evaluation({"a": answer(1, 0, questions)}).report(), allow_unjudged=True) is None


def test_a_worse_revision_is_refused_also_where_unjudged_ones_are_allowed() -> None:
    assert refusal_of(Evaluation({"a": answer(1, 0)}).report(), allow_unjudged=True) is not None


def test_both_revisions_are_printed() -> None:
    assert "0.500 → 1.000" in printed(Evaluation({"a": answer(0.5, 1)}).report())


def test_verdict_is_printed() -> None:
    assert "better: The other revision finds more." in printed(Evaluation({"a": answer(0.5, 1)}).report())


def test_no_questions_are_printed_without_figures() -> None:
    assert printed(Evaluation({"a": answer(0, None, 0)}).report()).startswith("0 questions of 1 users")


def test_listed_turn_is_a_turn_of_the_log() -> None:
    assert [turn.memory_id for turn in logged_turns([MEMORY])] == ["m1"]


@pytest.mark.parametrize("other", [{"version": 2}, {"turn_id": None}, {"type": "semantic"}])
def test_edited_and_derived_memories_are_no_turns_of_the_log(other: dict[str, Any]) -> None:
    assert logged_turns([MEMORY | other]) == []
