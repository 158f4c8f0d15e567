"""Which later turns become questions, and which earlier turns are their evidence."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from agents.rules.evaluation.questions import (
    MAX_EVIDENCE,
    RECENT_TURNS,
    LoggedTurn,
    Question,
    make_questions,
    sample_questions,
)

START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
PLATES = "A centrifuge weighs 400 kg, so spread its load with steel plates."
AGAIN = "The keys come on Friday, and the steel plates go under the heavy machines."
SMALL_TALK = [f"Today I read chapter{number} of novel{number}." for number in range(RECENT_TURNS)]


def turn(text: str, number: int, **fields: Any) -> LoggedTurn:
    """Return the turn of this number, accepted so many minutes after the first."""
    said = LoggedTurn(
        memory_id=f"m{number}",
        scope=(("project_id", "default"), ("user_id", "u1")),
        conversation_id="c1",
        mode="general",
        role="user",
        speaker="Ana",
        text=text,
        accepted_at=START + timedelta(minutes=number),
    )
    return said._replace(**fields)


def log(*texts: str) -> list[LoggedTurn]:
    return [turn(text, number) for number, text in enumerate(texts)]


def questions(turns: Sequence[LoggedTurn]) -> list[Question]:
    return make_questions(turns)


def test_turn_that_comes_back_to_an_old_one_is_a_question() -> None:
    [question] = questions(log(PLATES, *SMALL_TALK, AGAIN))
    assert question.text == AGAIN


def test_evidence_is_the_turn_that_it_comes_back_to() -> None:
    [question] = questions(log(PLATES, *SMALL_TALK, AGAIN))
    assert question.evidence == ("m0",)


def test_question_is_asked_just_before_its_turn() -> None:
    last = log(PLATES, *SMALL_TALK, AGAIN)[-1]
    [question] = questions(log(PLATES, *SMALL_TALK, AGAIN))
    assert question.asked_at == last.accepted_at - timedelta(milliseconds=1)


def test_evidence_may_be_of_an_assistant_and_of_another_conversation() -> None:
    plates = turn(PLATES, 0, role="assistant", conversation_id="c0", speaker=None)
    assert len(questions([plates, turn(AGAIN, 1)])) == 1


def test_inflected_words_link() -> None:
    assert len(questions(log(PLATES, *SMALL_TALK, "We need one more steel plate for the second centrifuge."))) == 1


def test_recent_turns_are_no_evidence() -> None:
    assert questions(log(PLATES, *SMALL_TALK[1:], AGAIN)) == []


def test_what_was_said_again_recently_needs_no_memory() -> None:
    assert questions(log(PLATES, *SMALL_TALK[1:], "Where are those steel plates?", AGAIN)) == []


def test_words_that_stand_apart_are_no_link() -> None:
    apart = "Steel is dear again this year, says the man who sold us the porcelain with the blue plates."
    assert questions(log(PLATES, *SMALL_TALK, apart)) == []


def test_words_of_many_turns_are_no_link() -> None:
    often = [f"On day{number} the steel plates moved to room{number}." for number in range(MAX_EVIDENCE)]
    assert questions(log(PLATES, *often, *SMALL_TALK, AGAIN)) == []


def test_times_and_amounts_are_no_link() -> None:
    earlier, later = (
        "The train leaves in ten minutes, on Friday morning.",
        "Call me in ten minutes or on Friday morning.",
    )
    assert questions(log(earlier, *SMALL_TALK, later)) == []


def test_speakers_are_no_link() -> None:
    assert questions(log("Ana Steel has a cold.", *SMALL_TALK, "Thank you, Ana, and what would Steel do?")) == []


def test_quoted_evidence_is_no_question() -> None:
    assert questions(log(PLATES, *SMALL_TALK, "You wrote: spread its load with steel plates. How many?")) == []


@pytest.mark.parametrize("role", ["assistant", "tool", "system"])
def test_only_people_ask(role: str) -> None:
    turns = log(PLATES, *SMALL_TALK)
    assert questions([*turns, turn(AGAIN, len(turns), role=role)]) == []


def test_a_few_words_are_no_question() -> None:
    assert questions(log(PLATES, *SMALL_TALK, "Steel plates, yes!")) == []


def test_of_a_long_turn_the_linked_sentences_are_asked() -> None:
    long = " ".join(f"Then came guest{number} with a cake." for number in range(30))
    [question] = questions(log(PLATES, *SMALL_TALK, f"{long} {AGAIN}"))
    assert question.text == AGAIN


@pytest.mark.parametrize("apart", [{"mode": "journal"}, {"scope": (("project_id", "p2"), ("user_id", "u1"))}])
def test_evidence_lies_in_the_scope_and_mode_of_its_question(apart: dict[str, Any]) -> None:
    assert questions([turn(PLATES, 0, **apart), *[turn(text, 1) for text in SMALL_TALK], turn(AGAIN, 2)]) == []


def test_turns_of_one_timestamp_are_not_known_to_each_other() -> None:
    same = [turn(text, 0, memory_id=f"m{number}") for number, text in enumerate([PLATES, *SMALL_TALK, AGAIN])]
    assert questions(same) == []


def test_sample_is_always_the_same() -> None:
    made = [Question("?", "general", START + timedelta(days=day), ("m0",), (), f"m{day}") for day in range(50)]
    assert sample_questions(made, 10) == sample_questions(made[::-1], 10)


def test_sample_is_in_order_of_time() -> None:
    made = [Question("?", "general", START + timedelta(days=day), ("m0",), (), f"m{day}") for day in range(50)]
    sample = sample_questions(made, 10)
    assert sorted(sample, key=lambda question: question.asked_at) == sample
