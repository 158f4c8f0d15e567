"""Hooks of coding agents, while the memory is away: what of a session waits in the outbox."""

import asyncio
import json
import os
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from modestream_client.boundary import USER_BOUNDARY
from modestream_client.hooks import Agent, HookSettings, run_event
from modestream_client.imports import Message, read_export, sources
from modestream_client.outbox import Outbox

from tests.builders.transcripts import codex_line, line, written_session

Json = dict[str, Any]

AWAY = "http://127.0.0.1:1"


@pytest.fixture
def settings(tmp_path: Path) -> HookSettings:
    return HookSettings(AWAY, None, "ana", "boats", tmp_path / "outbox")


def outbox_of(settings: HookSettings) -> Outbox:
    return Outbox(Outbox.path_of(settings.outbox, USER_BOUNDARY.key({"user_id": settings.user})))


def waiting(settings: HookSettings) -> list[Json]:
    """Take the waiting turns out of the outbox."""
    turns = []
    with closing(outbox_of(settings)) as box:
        while (queued := box.first()) is not None:
            turns.append(queued.turn)
            box.remove(queued.number)
    return turns


def ids(settings: HookSettings) -> list[str]:
    return [turn["turn_id"] for turn in waiting(settings)]


async def told(name: str, path: Path, settings: HookSettings, agent: Agent = "claude-code") -> str:
    """Tell the hook an event; return what it prints."""
    event = {"hook_event_name": name, "session_id": "s1", "transcript_path": str(path), "cwd": "/src/boats"}
    return await run_event(event, agent, settings)


async def test_what_a_session_has_said_waits_with_the_ids_of_an_import(tmp_path: Path, settings: HookSettings) -> None:
    transcript = written_session(tmp_path, line(1) + line(2, "assistant"))
    await told("Stop", transcript, settings)
    assert ids(settings) == ["m1", "m2"]


async def test_the_turns_are_in_the_scope_of_the_settings(tmp_path: Path, settings: HookSettings) -> None:
    transcript = written_session(tmp_path, line(1))
    await told("Stop", transcript, settings)
    assert waiting(settings)[0]["scope"] == {"user_id": "ana", "project_id": "boats"}


async def test_each_message_is_added_once(tmp_path: Path, settings: HookSettings) -> None:
    transcript = written_session(tmp_path, line(1) + line(2, "assistant"))
    await told("UserPromptSubmit", transcript, settings)
    with transcript.open("a") as more:
        more.write(line(3))
    await told("Stop", transcript, settings)
    await told("SessionEnd", transcript, settings)
    assert ids(settings) == ["m1", "m2", "m3"]


async def test_a_line_that_is_being_written_is_added_when_it_is_whole(tmp_path: Path, settings: HookSettings) -> None:
    transcript = written_session(tmp_path, line(1) + line(2)[:30])
    await told("Stop", transcript, settings)
    transcript.write_text(line(1) + line(2))
    await told("Stop", transcript, settings)
    assert ids(settings) == ["m1", "m2"]


async def test_a_transcript_that_is_written_anew_is_added_anew(tmp_path: Path, settings: HookSettings) -> None:
    transcript = written_session(tmp_path, line(1) + line(2))
    await told("Stop", transcript, settings)
    transcript.write_text(line(3))
    await told("Stop", transcript, settings)
    assert ids(settings) == ["m1", "m2", "m3"]


def bytes_read() -> int:
    """Return the bytes that this process has read from files until now."""
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the bytes")
@pytest.mark.parametrize("agent", ["claude-code", "codex"])
async def test_a_grown_transcript_is_read_from_where_the_last_call_stopped(
    agent: Agent, tmp_path: Path, settings: HookSettings
) -> None:
    transcript = tmp_path / "session.jsonl"
    of_agent = line if agent == "claude-code" else codex_line
    transcript.write_text("".join(of_agent(number, content="a" * 100_000) for number in range(50)))
    await told("Stop", transcript, settings, agent)
    with transcript.open("a") as more:
        more.write(of_agent(50))
    before = bytes_read()
    await told("UserPromptSubmit", transcript, settings, agent)
    assert bytes_read() - before < 500_000


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
async def test_a_transcript_that_is_read_line_by_line_has_the_turns_of_its_import(
    agent: Agent, tmp_path: Path, settings: HookSettings
) -> None:
    transcript = tmp_path / "session.jsonl"
    times = ["08:01:00.000", "08:01:00.000", "08:01:01.000", "08:01:01.000", "08:01:00.500", "08:01:09.000"]
    of_agent = line if agent == "claude-code" else codex_line
    texts = ["go on", "go on", "stop", "go on", "go on", "b" * 40_000]
    for number, (at, text) in enumerate(zip(times, texts, strict=True)):
        with transcript.open("a") as more:
            more.write(of_agent(number, content=text, at=at))
        await told("UserPromptSubmit", transcript, settings, agent)
    with transcript.open("rb") as whole:
        imported = [entry.turn for entry in read_export(whole, agent) if isinstance(entry, Message)]
    added = [{name: turn[name] for name in imported[0]} for turn in waiting(settings)]
    assert added == imported


async def test_a_session_of_codex_without_times_keeps_repeated_messages(tmp_path: Path, settings: HookSettings) -> None:
    rollout = tmp_path / "session.jsonl"
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go on"}]}
    rollout.write_text(json.dumps({"id": "thread-1", "timestamp": "2026-03-05T08:01:00.000Z"}) + "\n")
    for _ in range(3):
        with rollout.open("a") as more:
            more.write(json.dumps(item) + "\n")
        await told("Stop", rollout, settings, "codex")
    assert len(set(ids(settings))) == 3


async def test_messages_that_replace_the_last_ones_are_added(tmp_path: Path, settings: HookSettings) -> None:
    transcript = written_session(tmp_path, line(1) + line(2))
    await told("Stop", transcript, settings)
    waiting(settings)
    transcript.write_text(line(1) + line(3) + line(4))
    await told("Stop", transcript, settings)
    assert {"m3", "m4"} <= set(ids(settings))


async def test_a_cut_transcript_that_grows_again_is_added(tmp_path: Path, settings: HookSettings) -> None:
    transcript = written_session(tmp_path, line(1) + line(2))
    await told("Stop", transcript, settings)
    waiting(settings)
    transcript.write_text(line(1))
    await told("UserPromptSubmit", transcript, settings)
    transcript.write_text(line(1) + line(3))
    await told("Stop", transcript, settings)
    assert "m3" in ids(settings)


async def test_a_transcript_that_has_not_grown_is_not_read(tmp_path: Path, settings: HookSettings) -> None:
    transcript = written_session(tmp_path, line(1))
    await told("Stop", transcript, settings)
    transcript.write_text(line(2))
    await told("SessionStart", tmp_path / "new.jsonl", settings)
    assert ids(settings) == ["m1"]


async def test_a_transcript_that_can_not_be_read_holds_up_no_other(tmp_path: Path, settings: HookSettings) -> None:
    broken, began = tmp_path / "broken.jsonl", tmp_path / "began.jsonl"
    broken.write_text(line(1))
    await told("Stop", broken, settings)
    broken.unlink()
    broken.mkdir()
    began.write_text(line(2))
    await told("SessionStart", began, settings)
    assert ids(settings) == ["m1", "m2"]


@pytest.mark.parametrize("path", ["~nobody-of-this-name/a.jsonl", "a\0b", 7, ["a"]])
async def test_an_event_of_a_wrong_path_fails_nothing(path: Any, settings: HookSettings) -> None:
    assert await run_event({"hook_event_name": "Stop", "transcript_path": path}, "claude-code", settings) == ""


async def test_a_pipe_is_no_transcript(tmp_path: Path, settings: HookSettings) -> None:
    os.mkfifo(tmp_path / "pipe")
    async with asyncio.timeout(10):
        assert await told("Stop", tmp_path / "pipe", settings) == ""


async def test_a_full_outbox_is_sent_all_the_same(
    tmp_path: Path, settings: HookSettings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Outbox.__init__, "__defaults__", (40_000,))
    transcript = written_session(tmp_path, "".join(line(number, content="a" * 1000) for number in range(50)))
    await told("Stop", transcript, settings)
    assert "is left out for now: the outbox" in capsys.readouterr().err


async def test_a_number_that_is_none_costs_its_message_alone(tmp_path: Path, settings: HookSettings) -> None:
    transcript = written_session(tmp_path, line(1) + line(2).replace('"/src/boats"', "NaN") + line(3))
    await told("Stop", transcript, settings)
    assert ids(settings) == ["m1", "m3"]


async def test_a_number_that_is_none_is_told(tmp_path: Path, settings: HookSettings) -> None:
    transcript = written_session(tmp_path, line(1) + line(2).replace('"/src/boats"', "NaN"))
    assert "can't be stored" in await told("Stop", transcript, settings)


def left_out(settings: HookSettings) -> list[tuple[str, int, str]]:
    with closing(outbox_of(settings)) as box:
        return box.left_out()


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lines be too long from 1,000 bytes on."""
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 1000)


LONG = line(2, content="a" * 2500)


@pytest.mark.usefixtures("short_lines")
@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop"])
async def test_a_line_that_is_too_long_is_told_to_the_user(event: str, tmp_path: Path, settings: HookSettings) -> None:
    transcript = written_session(tmp_path, line(1) + LONG + line(3))
    printed = json.loads(await told(event, transcript, settings))
    assert "1 new line of a transcript can't be stored" in printed["systemMessage"]


@pytest.mark.usefixtures("short_lines")
@pytest.mark.parametrize("lines", [[line(1), LONG], [LONG, line(1)]], ids=["last", "first"])
async def test_a_line_that_is_too_long_is_known_by_its_offset(
    lines: list[str], tmp_path: Path, settings: HookSettings
) -> None:
    transcript = written_session(tmp_path, "".join(lines))
    await told("Stop", transcript, settings)
    at = "".join(lines).index(LONG)
    assert left_out(settings) == [(str(transcript), at, "a line has at most 1000 bytes")]


@pytest.mark.usefixtures("short_lines")
async def test_a_line_that_is_too_long_is_told_once(tmp_path: Path, settings: HookSettings) -> None:
    transcript = written_session(tmp_path, line(1) + LONG)
    await told("UserPromptSubmit", transcript, settings)
    with transcript.open("a") as more:
        more.write(line(3))
    assert await told("UserPromptSubmit", transcript, settings) == ""


@pytest.mark.usefixtures("short_lines")
async def test_a_long_line_that_is_being_written_is_not_told(tmp_path: Path, settings: HookSettings) -> None:
    transcript = written_session(tmp_path, line(1) + LONG[:-1])
    await told("Stop", transcript, settings)
    assert left_out(settings) == []


async def test_lines_of_a_transcript_without_them_are_forgotten(tmp_path: Path, settings: HookSettings) -> None:
    transcript = written_session(tmp_path, line(1) + "no JSON\n")
    await told("Stop", transcript, settings)
    transcript.write_text(line(4))
    await told("Stop", transcript, settings)
    assert left_out(settings) == []


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
async def test_a_transcript_of_another_format_is_told(agent: Agent, tmp_path: Path, settings: HookSettings) -> None:
    transcript = written_session(tmp_path, '{"kind": "something new"}\n' * 3)
    printed = await told("Stop", transcript, settings, agent)
    assert "can't be stored" in printed


async def test_results_of_tools_are_left_out(tmp_path: Path, settings: HookSettings) -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "12 boats"}]}
    transcript = written_session(tmp_path, line(1) + line(2, "user", [result]))
    await told("Stop", transcript, settings)
    assert ids(settings) == ["m1"]


async def test_a_start_adds_what_a_killed_session_has_left(tmp_path: Path, settings: HookSettings) -> None:
    killed, began = tmp_path / "killed.jsonl", tmp_path / "began.jsonl"
    killed.write_text(line(1))
    await told("UserPromptSubmit", killed, settings)
    killed.write_text(line(1) + line(2))
    await told("SessionStart", began, settings)
    assert ids(settings) == ["m1", "m2"]


async def test_a_session_begins_while_the_memory_is_away(tmp_path: Path, settings: HookSettings) -> None:
    assert await told("SessionStart", tmp_path / "new.jsonl", settings) == ""


async def test_codex_names_a_thread_and_not_its_file(
    tmp_path: Path, settings: HookSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    rollout = tmp_path / "sessions/2026/03/05/rollout-2026-03-05T08-01-00-thread-1.jsonl"
    rollout.parent.mkdir(parents=True)
    start = {"type": "session_meta", "timestamp": "2026-03-05T08:01:00.000Z", "payload": {"id": "thread-1"}}
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    item = {"type": "response_item", "timestamp": "2026-03-05T08:01:01.000Z", "payload": said}
    rollout.write_text("".join(json.dumps(each) + "\n" for each in (start, item)))
    await run_event({"type": "agent-turn-complete", "thread-id": "thread-1"}, "codex", settings)
    assert [turn["content"] for turn in waiting(settings)] == ["hello"]
