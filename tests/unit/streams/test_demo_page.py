"""The demo's script and its output."""

import json
from datetime import datetime
from typing import Any

import pytest
from modestream_client import Answer, Context, Notice
from modestream_client.hits import Evidence, Hit

from streams.demo.script import (
    CONVERSATION,
    RULE,
    WIDTH,
    answer_lines,
    context_lines,
    hit_lines,
    http_lines,
    question_lines,
)

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

LONG_WARNING = Notice("degraded", "no vectors yet, " * 20)

CONTEXT = Context(
    messages=[
        {"role": "system", "content": "You are …"},
        {"role": "user", "content": "Memories follow.\n" + '{"content":"' + "word " * 60},
        {"role": "assistant", "content": "Ok"},
    ],
    references=("m1", "m2"),
    interaction_mode="DEBUGGING",
    interaction_confidence=0.9349,
    sections={"recent_window": ["m1", "m2"], "rules": []},
    budget={"recent_window": 240},
    tokens={"total": 256, "recent_window": 200},
    dropped=("m0",),
    warnings=(Notice("unknown_pin", "not in this scope: m8"),),
)


def test_every_query_expects_a_published_turn_within_its_filters() -> None:
    turns = {turn["turn_id"]: turn for turn in SCRIPT["turns"]}
    for question in SCRIPT["questions"]:
        turn = turns[question["expected"]]
        assert question["projects"] in ("*", turn["project_id"])
        corrected = {correction["turn_id"]: correction["mode"] for correction in SCRIPT["corrections"]}
        mode = corrected.get(turn["turn_id"], turn.get("mode", "general"))
        assert question.get("mode", "general") in ("*", mode)
        since = datetime.fromisoformat(question.get("since", "2000-01-01T00:00:00Z"))
        assert since <= datetime.fromisoformat(turn["occurred_at"])


def test_modes_of_turns_and_corrections_are_declared() -> None:
    declared = {mode["name"] for mode in SCRIPT["modes"]}
    turns = {turn["turn_id"]: turn for turn in SCRIPT["turns"]}
    assert {turn["mode"] for turn in SCRIPT["turns"] if "mode" in turn} == declared
    for correction in SCRIPT["corrections"]:
        assert correction["mode"] in declared
        assert "mode" not in turns[correction["turn_id"]]
        assert correction["project_id"] == turns[correction["turn_id"]]["project_id"]


def test_one_query_runs_in_each_of_two_modes() -> None:
    queries = {(question["query"], question.get("mode")) for question in SCRIPT["questions"]}
    assert any({(query, "general"), (query, "journal")} <= queries for query, _ in queries)


def test_one_turn_is_edited_after_its_first_text() -> None:
    ids = [turn["turn_id"] for turn in SCRIPT["turns"]]
    edited = {name for name in ids if ids.count(name) > 1}
    assert edited == {"flat-05"}
    texts = [turn["content"] for turn in SCRIPT["turns"] if turn["turn_id"] in edited]
    assert "Thursday" in texts[0]
    assert "Friday" in texts[1]


def test_hit_shows_score_speaker_time_text_and_origin() -> None:
    shown = " ".join(" ".join(hit_lines(1, FOUND, {FOUND.evidence[1]: "lukewarm"})).split())
    assert "1. 0.81 Nadia, Sun 4 Oct 2026, 09:20 UTC" in shown
    assert FOUND.text.strip() in shown
    assert "turn t-1, characters 0 to 300; turn t-1, characters 3 to 9 of a://b" in shown
    assert "in mode general, project home, conversation cat, version 2" in shown
    assert "a://b: “lukewarm”" in shown


@pytest.mark.parametrize("speaker", ["Nadia", None])
def test_lines_fit_the_terminal(speaker: str | None) -> None:
    lines = [
        *question_lines(1, "Why?", "project home"),
        *answer_lines(Answer((FOUND.model_copy(update={"speaker": speaker}),), (LONG_WARNING,), ("general",)), 3.2, {}),
        *context_lines("why? " * 60, 1000, CONTEXT),
    ]
    assert max(len(line) for line in lines) == WIDTH


def test_cross_mode_search_shows_its_method() -> None:
    answer = Answer((), (), ("general", "journal"), "cross_mode", diagnostics={"method": "rank_fusion"})
    assert next(answer_lines(answer, 3.2, {})) == (
        "nothing found, cross_mode search by rank_fusion in mode general, journal, 3.2 ms round trip"
    )


def test_prompt_shows_interaction_mode_token_counts_and_memories() -> None:
    assert list(context_lines("Why zero?", 1000, CONTEXT)) == [
        "",
        RULE,
        "A prompt for: Why zero?",
        "interaction mode DEBUGGING, confidence 0.93; 256 of 1000 tokens with 2 memories, 1 dropped",
        "warning unknown_pin: not in this scope: m8",
        "",
        "Memories follow.",
        '{"content":"' + "word " * 17 + "…",
    ]


def test_warnings_and_empty_answers_are_shown() -> None:
    lines = list(answer_lines(Answer((), (Notice("degraded", "no vectors"),), ("general",), "lexical"), 3.2, {}))
    assert lines == ["nothing found, lexical search in mode general, 3.2 ms round trip", "warning degraded: no vectors"]


def test_question_over_http_is_a_command_to_copy() -> None:
    lines = http_lines("http://127.0.0.1:8080", "demo", '{"query": "where?"}')
    assert lines[-3:] == [
        "curl http://127.0.0.1:8080/v1/users/demo/memories/search \\",
        "  -H 'content-type: application/json' \\",
        '  -d \'{"query": "where?"}\'',
    ]
