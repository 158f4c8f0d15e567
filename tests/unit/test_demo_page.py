"""What the demo publishes and how it shows what it found."""

import json
from datetime import datetime
from typing import Any

import pytest

from schemas.memories import Evidence
from schemas.retrieval import Hit
from streams.asking.answers import Answer, Notice
from streams.demo.page import WIDTH, answer_lines, hit_lines, question_lines
from streams.demo.script import CONVERSATION

SCRIPT: dict[str, Any] = json.loads(CONVERSATION.read_text(encoding="utf-8"))

FOUND = Hit(
    memory_id="m1",
    turn_id="t-1",
    conversation_id="cat",
    scope={"user_id": "demo", "project_id": "home"},
    type="episodic",
    mode="general",
    mode_source="fallback",
    role="user",
    speaker="Nadia",
    text="word " * 60,
    occurred_at="2026-10-04T09:20:00Z",
    score=0.8149,
    evidence=(Evidence(turn_id="t-1", start=0, end=300), Evidence(turn_id="t-1", start=3, end=9, resource="a://b")),
    version=2,
    embedding_status="ready",
)


def test_every_question_expects_a_turn_that_is_published_and_may_be_found() -> None:
    turns = {turn["turn_id"]: turn for turn in SCRIPT["turns"]}
    for question in SCRIPT["questions"]:
        turn = turns[question["expected"]]
        assert question["projects"] in ("*", turn["project_id"])
        since = datetime.fromisoformat(question.get("since", "2000-01-01T00:00:00Z"))
        assert since <= datetime.fromisoformat(turn["occurred_at"])


def test_one_turn_is_edited_and_the_edit_comes_last() -> None:
    ids = [turn["turn_id"] for turn in SCRIPT["turns"]]
    edited = {name for name in ids if ids.count(name) > 1}
    assert edited == {"flat-05"}
    texts = [turn["content"] for turn in SCRIPT["turns"] if turn["turn_id"] in edited]
    assert "Thursday" in texts[0]
    assert "Friday" in texts[1]


def test_a_hit_shows_score_who_when_text_and_where_from() -> None:
    shown = " ".join(" ".join(hit_lines(1, FOUND, {FOUND.evidence[1]: "lukewarm"})).split())
    assert "1. 0.81 Nadia, Sun 4 Oct 2026, 09:20 UTC" in shown
    assert FOUND.text.strip() in shown
    assert "turn t-1, characters 0 to 300; turn t-1, characters 3 to 9 of a://b" in shown
    assert "project home, conversation cat, version 2" in shown
    assert "a://b: “lukewarm”" in shown


@pytest.mark.parametrize("speaker", ["Nadia", None])
def test_no_line_is_wider_than_the_terminal(speaker: str | None) -> None:
    lines = [
        *question_lines(1, "Why?", "project home"),
        *answer_lines(Answer((FOUND.model_copy(update={"speaker": speaker}),), modes=("general",)), 3.2, {}),
    ]
    assert max(len(line) for line in lines) == WIDTH


def test_warnings_and_an_empty_answer_are_shown() -> None:
    lines = list(answer_lines(Answer((), (Notice("degraded", "no vectors"),), ("general",), "lexical"), 3.2, {}))
    assert lines == [
        "nothing found, lexical search in mode general, 3.2 ms there and back",
        "warning degraded: no vectors",
    ]
