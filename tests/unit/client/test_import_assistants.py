"""Readers of exports of assistants: ChatGPT, Claude, Claude Code, Codex."""

import json

import pytest
from modestream_client.imports import Message
from modestream_client.imports.reading import MAX_CONTENT_CHARS

from tests.builders.exports import Json, chatgpt, claude, node, read, rollout, said, session_line, spoken, turns, zipped


def test_chatgpt_shows_the_branch_of_the_current_node() -> None:
    export = chatgpt(node("a", "root"), node("b", "a", "assistant", "first try"), node("c", "a", "assistant", "again"))
    assert said(export, "chatgpt") == [("user", "hello"), ("assistant", "again")]


def test_chatgpt_without_a_current_node_shows_the_latest_leaf() -> None:
    export = chatgpt(node("a", "root"), node("b", "a", "assistant", "ahoy", create_time=1772700009.0), last="gone")
    assert said(export, "chatgpt")[-1] == ("assistant", "ahoy")


@pytest.mark.parametrize(
    "hidden",
    [
        node("x", "a", "system", "be nice"),
        node("x", "a", "assistant", "import os", recipient="python"),
        node("x", "a", "assistant", content={"content_type": "thoughts", "thoughts": []}),
        node("x", "a", "user", "about me", metadata={"is_visually_hidden_from_conversation": True}),
        node("x", "a", "user", content={"content_type": "user_editable_context", "user_profile": "metric"}),
    ],
)
def test_what_chatgpt_does_not_show_is_no_message(hidden: Json) -> None:
    assert said(chatgpt(node("a", "root"), hidden), "chatgpt") == [("user", "hello")]


def test_what_a_tool_of_chatgpt_prints_is_its_own() -> None:
    printed = node("t", "a", "tool", content={"content_type": "execution_output", "text": "42"})
    assert said(chatgpt(node("a", "root"), printed), "chatgpt")[-1] == ("tool", "42")


def test_words_that_were_spoken_to_chatgpt_are_words() -> None:
    parts = [
        {"content_type": "audio_transcription", "text": "Hello there."},
        {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_1", "format": "wav"},
    ]
    [turn] = turns(chatgpt(node("a", "root", content={"content_type": "multimodal_text", "parts": parts})), "chatgpt")
    assert turn["content"] == "Hello there."
    assert turn["resources"][0]["media_type"] == "audio/wav"


def test_marks_of_sources_in_chatgpts_answers_are_dropped() -> None:
    export = chatgpt(node("a", "root", "assistant", "It floats.\ue200cite\ue202turn0search1\ue201"))
    assert said(export, "chatgpt") == [("assistant", "It floats.")]


def test_chatgpts_ids_and_times_are_kept() -> None:
    [turn] = turns(chatgpt(node("a", "root")), "chatgpt")
    kept = {name: turn[name] for name in ("turn_id", "conversation_id", "occurred_at")}
    assert kept == {"turn_id": "a", "conversation_id": "talk-1", "occurred_at": "2026-03-05T08:40:00.500000Z"}


def test_a_circle_in_chatgpts_tree_ends() -> None:
    assert len(turns(chatgpt(node("a", "b"), node("b", "a")), "chatgpt")) == 2


def test_all_conversation_files_of_chatgpts_zip_are_read() -> None:
    other = chatgpt(node("b", "root", text="second"), conversation_id="talk-2")
    files = {"conversations-000.json": chatgpt(node("a", "root")), "conversations-001.json": other, "chat.html": "x"}
    assert said(zipped(**files), "chatgpt") == [("user", "hello"), ("user", "second")]


def test_claudes_thoughts_and_calls_are_no_words() -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "input": {}},
        {"type": "text", "text": "Ahoy"},
    ]
    assert said(claude(sender="assistant", content=blocks), "claude") == [("assistant", "Ahoy")]


def test_an_upload_of_claude_has_its_text() -> None:
    attached = [{"file_name": "boat.txt", "extracted_content": "A green boat."}]
    [turn] = turns(claude(attachments=attached), "claude")
    assert turn["resources"] == [
        {"uri": "claude:m1/boat.txt", "media_type": "text/plain", "sha256": None, "text": "A green boat."}
    ]


def test_a_message_without_words_says_what_came_with_it() -> None:
    [turn] = turns(claude(text="", files=[{"file_uuid": "f1", "file_name": "boat.png"}]), "claude")
    assert turn["content"] == "boat.png"


def test_a_message_with_nothing_in_it_is_none() -> None:
    assert turns(claude(text=" "), "claude") == []


def test_text_of_an_upload_beyond_a_resource_goes_on_in_the_next() -> None:
    text = "word " * (MAX_CONTENT_CHARS // 2)
    [first, *_] = parts = turns(claude(attachments=[{"file_name": "boat.txt", "extracted_content": text}]), "claude")
    kept = [resource["text"] for part in parts for resource in part["resources"]]
    assert sum(part.count("word") for part in kept) == MAX_CONTENT_CHARS // 2
    assert first["turn_id"] == "m1"


@pytest.mark.parametrize(
    "line",
    [
        {"type": "summary", "summary": "boats", "leafUuid": "x"},
        session_line(isMeta=True),
        session_line(isSidechain=True),
        session_line(isCompactSummary=True),
        session_line(message={"role": "user", "content": "<command-name>/clear</command-name>"}),
        session_line(message={"role": "user", "content": "[Request interrupted by user]"}),
        session_line(type="assistant", message={"content": [{"type": "thinking", "thinking": "hm"}]}),
        session_line(type="assistant", message={"content": [{"type": "tool_use", "id": "t", "input": {}}]}),
    ],
)
def test_lines_of_claude_code_that_are_no_messages(line: Json) -> None:
    assert turns((session_line(), line), "claude-code")[1:] == []


def test_what_a_tool_of_claude_code_answers_is_its_own() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "12 boats"}]}
    assert said((session_line(message={"content": [result]}),), "claude-code") == [("tool", "12 boats")]


def test_reminders_that_claude_code_puts_in_are_cut_out() -> None:
    content = "Build it.<system-reminder>be nice</system-reminder>"
    assert said((session_line(message={"content": content}),), "claude-code") == [("user", "Build it.")]


def test_a_session_of_claude_code_belongs_to_its_directory() -> None:
    [entry] = read((session_line(),), "claude-code")
    assert isinstance(entry, Message)
    assert entry.belongs_to["project"] == "boats"


def test_instructions_that_codex_puts_in_are_no_messages() -> None:
    put_in = ("# AGENTS.md instructions for /src", "<environment_context>x</environment_context>")
    export = rollout(
        spoken("developer", "be nice"), *(spoken("user", text) for text in put_in), spoken("user", "hello")
    )
    assert said(export, "codex") == [("user", "hello")]


def test_what_a_tool_of_codex_prints_is_its_own() -> None:
    output = {"type": "function_call_output", "call_id": "c", "output": json.dumps({"output": "12 boats"})}
    assert said(rollout(output), "codex") == [("tool", "12 boats")]


def test_the_same_words_twice_in_a_session_of_codex_are_two_turns() -> None:
    export = rollout(spoken("user", "go on"), spoken("user", "go on"))
    assert len({turn["turn_id"] for turn in turns(export, "codex")}) == 2


def test_a_session_of_codex_from_before_envelopes_is_read() -> None:
    old = ({"id": "s1", "timestamp": "2025-05-05T08:01:00Z", "instructions": None}, spoken("user", "hello"))
    assert said(old, "codex") == [("user", "hello")]
