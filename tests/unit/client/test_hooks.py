"""Hooks of coding agents, while the memory is away: what of a session waits in the outbox."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from modestream_client.boundary import USER_BOUNDARY
from modestream_client.hooks import Agent, HookSettings, run_event
from modestream_client.imports import Message, read_export, sources
from modestream_client.outbox import Outbox

Json = dict[str, Any]

AWAY = "http://127.0.0.1:1"


@pytest.fixture
def settings(tmp_path: Path) -> HookSettings:
    return HookSettings(AWAY, None, "ana", "boats", tmp_path / "outbox")


def line(number: int, role: str = "user", content: Any = None, at: str | None = None) -> str:
    """A line of a session of Claude Code."""
    told = {"role": role, "content": content or f"Message {number}."}
    timestamp = f"2026-03-05T{at or f'08:01:{number:02}.000'}Z"
    line = {"type": role, "uuid": f"m{number}", "sessionId": "s1", "timestamp": timestamp}
    return json.dumps(line | {"cwd": "/src/boats", "message": told}) + "\n"


def codex_line(number: int, content: str = "hello", at: str | None = None) -> str:
    """A line of a session of Codex; before the first one its header."""
    timestamp = f"2026-03-05T{at or f'08:01:{number:02}.000'}Z"
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": content}]}
    item = json.dumps({"type": "response_item", "timestamp": timestamp, "payload": said}) + "\n"
    start = {"type": "session_meta", "timestamp": "2026-03-05T08:01:00.000Z", "payload": {"id": "thread-1"}}
    return item if number else json.dumps(start) + "\n" + item


def waiting(settings: HookSettings) -> list[Json]:
    """Take the waiting turns out of the outbox."""
    box = Outbox(Outbox.path_of(settings.outbox, USER_BOUNDARY.key({"user_id": settings.user})))
    turns = []
    while (queued := box.first()) is not None:
        turns.append(queued.turn)
        box.remove(queued.number)
    box.close()
    return turns


def ids(settings: HookSettings) -> list[str]:
    return [turn["turn_id"] for turn in waiting(settings)]


async def told(name: str, path: Path, settings: HookSettings, agent: Agent = "claude-code") -> str:
    """Tell the hook an event; return what it prints."""
    event = {"hook_event_name": name, "session_id": "s1", "transcript_path": str(path), "cwd": "/src/boats"}
    return await run_event(event, agent, settings)


async def test_what_a_session_has_said_waits_with_the_ids_of_an_import(tmp_path: Path, settings: HookSettings) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1) + line(2, "assistant"))
    await told("Stop", transcript, settings)
    assert ids(settings) == ["m1", "m2"]


async def test_the_turns_are_in_the_scope_of_the_settings(tmp_path: Path, settings: HookSettings) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1))
    await told("Stop", transcript, settings)
    assert waiting(settings)[0]["scope"] == {"user_id": "ana", "project_id": "boats"}


async def test_each_message_is_added_once(tmp_path: Path, settings: HookSettings) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1) + line(2, "assistant"))
    await told("UserPromptSubmit", transcript, settings)
    with transcript.open("a") as more:
        more.write(line(3))
    await told("Stop", transcript, settings)
    await told("SessionEnd", transcript, settings)
    assert ids(settings) == ["m1", "m2", "m3"]


async def test_a_line_that_is_being_written_is_added_when_it_is_whole(tmp_path: Path, settings: HookSettings) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1) + line(2)[:30])
    await told("Stop", transcript, settings)
    transcript.write_text(line(1) + line(2))
    await told("Stop", transcript, settings)
    assert ids(settings) == ["m1", "m2"]


async def test_a_transcript_that_is_written_anew_is_added_anew(tmp_path: Path, settings: HookSettings) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1) + line(2))
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
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1) + line(2))
    await told("Stop", transcript, settings)
    waiting(settings)
    transcript.write_text(line(1) + line(3) + line(4))
    await told("Stop", transcript, settings)
    assert {"m3", "m4"} <= set(ids(settings))


async def test_a_cut_transcript_that_grows_again_is_added(tmp_path: Path, settings: HookSettings) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1) + line(2))
    await told("Stop", transcript, settings)
    waiting(settings)
    transcript.write_text(line(1))
    await told("UserPromptSubmit", transcript, settings)
    transcript.write_text(line(1) + line(3))
    await told("Stop", transcript, settings)
    assert "m3" in ids(settings)


async def test_a_transcript_that_has_not_grown_is_not_read(tmp_path: Path, settings: HookSettings) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1))
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
    transcript = tmp_path / "session.jsonl"
    transcript.write_text("".join(line(number, content="a" * 1000) for number in range(50)))
    await told("Stop", transcript, settings)
    assert "is left out for now: the outbox" in capsys.readouterr().err


async def test_a_number_that_is_none_costs_its_message_alone(tmp_path: Path, settings: HookSettings) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1) + line(2).replace('"/src/boats"', "NaN") + line(3))
    await told("Stop", transcript, settings)
    assert ids(settings) == ["m1", "m3"]


async def test_a_number_that_is_none_is_told(tmp_path: Path, settings: HookSettings) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1) + line(2).replace('"/src/boats"', "NaN"))
    assert "can't be stored" in await told("Stop", transcript, settings)


def left_out(settings: HookSettings) -> list[tuple[str, int, str]]:
    with closing(Outbox(Outbox.path_of(settings.outbox, USER_BOUNDARY.key({"user_id": settings.user})))) as box:
        return box.left_out()


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let lines be too long from 1,000 bytes on."""
    monkeypatch.setattr(sources, "MAX_LINE_BYTES", 1000)


LONG = line(2, content="a" * 2500)


@pytest.mark.usefixtures("short_lines")
@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop"])
async def test_a_line_that_is_too_long_is_told_to_the_user(event: str, tmp_path: Path, settings: HookSettings) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1) + LONG + line(3))
    printed = json.loads(await told(event, transcript, settings))
    assert "1 new line of a transcript can't be stored" in printed["systemMessage"]


@pytest.mark.usefixtures("short_lines")
@pytest.mark.parametrize("lines", [[line(1), LONG], [LONG, line(1)]], ids=["last", "first"])
async def test_a_line_that_is_too_long_is_known_by_its_offset(
    lines: list[str], tmp_path: Path, settings: HookSettings
) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text("".join(lines))
    await told("Stop", transcript, settings)
    at = "".join(lines).index(LONG)
    assert left_out(settings) == [(str(transcript), at, "a line has at most 1000 bytes")]


@pytest.mark.usefixtures("short_lines")
async def test_a_line_that_is_too_long_is_told_once(tmp_path: Path, settings: HookSettings) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1) + LONG)
    await told("UserPromptSubmit", transcript, settings)
    with transcript.open("a") as more:
        more.write(line(3))
    assert await told("UserPromptSubmit", transcript, settings) == ""


@pytest.mark.usefixtures("short_lines")
async def test_a_long_line_that_is_being_written_is_not_told(tmp_path: Path, settings: HookSettings) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1) + LONG[:-1])
    await told("Stop", transcript, settings)
    assert left_out(settings) == []


async def test_lines_of_a_transcript_without_them_are_forgotten(tmp_path: Path, settings: HookSettings) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1) + "no JSON\n")
    await told("Stop", transcript, settings)
    transcript.write_text(line(4))
    await told("Stop", transcript, settings)
    assert left_out(settings) == []


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
async def test_a_transcript_of_another_format_is_told(agent: Agent, tmp_path: Path, settings: HookSettings) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text('{"kind": "something new"}\n' * 3)
    printed = await told("Stop", transcript, settings, agent)
    assert "can't be stored" in printed


def test_status_names_lines_that_can_not_be_stored(tmp_path: Path) -> None:
    kept_box(tmp_path, line(1), "no JSON\n")
    named = f"{tmp_path / 'session.jsonl'}, at byte {len(line(1))}: the line is not JSON in UTF-8"
    assert f"1 lines of transcripts can't be stored:\n{named}" in run(tmp_path, "status").stdout


def test_a_broken_outbox_is_told_in_a_sentence(tmp_path: Path) -> None:
    run(tmp_path, "claude-code", said='{"hook_event_name": "Stop"}')
    [kept] = (tmp_path / ".local/state/modestream/outbox").glob("*.sqlite")
    kept.write_bytes(b"no database" * 100)
    assert "Traceback" not in run(tmp_path, "claude-code", said='{"hook_event_name": "Stop"}').stderr


def test_a_flush_that_ends_before_its_turns_says_why(tmp_path: Path) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1))
    run(tmp_path, "claude-code", said=json.dumps({"hook_event_name": "Stop", "transcript_path": str(transcript)}))
    assert "does not answer in time" in run(tmp_path, "flush", "--wait", "0.5").stderr


async def test_results_of_tools_are_left_out(tmp_path: Path, settings: HookSettings) -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "12 boats"}]}
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1) + line(2, "user", [result]))
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


def run(tmp_path: Path, *arguments: str, said: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """Run the hook as an agent does, with its outbox in a folder and no memory."""
    environment = {"HOME": str(tmp_path), "MODESTREAM_URL": AWAY, "MODESTREAM_USER": "ana", "PATH": "/usr/bin:/bin"}
    environment |= more
    command = "import sys; from modestream_client.hooks import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", command, *arguments],
        input=said,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_hook_succeeds_while_the_memory_is_away(tmp_path: Path) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1))
    event = json.dumps({"hook_event_name": "Stop", "transcript_path": str(transcript)})
    assert run(tmp_path, "claude-code", said=event).returncode == 0


def test_status_counts_what_waits(tmp_path: Path) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1) + line(2))
    run(tmp_path, "claude-code", said=json.dumps({"hook_event_name": "Stop", "transcript_path": str(transcript)}))
    assert run(tmp_path, "status").stdout.startswith("2 turns wait in ")


def test_a_flush_that_can_not_send_says_so(tmp_path: Path) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1))
    run(tmp_path, "claude-code", said=json.dumps({"hook_event_name": "Stop", "transcript_path": str(transcript)}))
    assert run(tmp_path, "flush", "--wait", "0.5").returncode == 1


def test_an_event_that_is_no_json_is_told(tmp_path: Path) -> None:
    assert "as JSON" in run(tmp_path, "codex", said="hello").stderr


def test_the_settings_of_an_agent_call_its_hook(tmp_path: Path) -> None:
    printed = json.loads(run(tmp_path, "claude-code", "--settings").stdout)
    assert printed["hooks"]["Stop"][0]["hooks"][0]["command"] == "modestream hook claude-code"


@pytest.mark.parametrize(
    "arguments",
    [["claud-code"], ["claude-code", "--nope"], ["codex", "{}", "{}"], []],
    ids=["agent", "option", "more", "none"],
)
def test_a_wrong_command_line_does_not_block_the_agent(arguments: list[str], tmp_path: Path) -> None:
    """An agent takes the status 2 of a hook as an order: it drops the prompt, or does not stop."""
    assert run(tmp_path, *arguments, said="{}").returncode == 1


@pytest.mark.parametrize(
    ("event", "own"),
    [
        ("[" * 100_000, {}),
        ('{"hook_event_name": ["Stop"]}', {}),
        ('{"hook_event_name": "Stop"}', {"MODESTREAM_URL": "http://127.0.0.1:99999"}),
        ('{"hook_event_name": "Stop"}', {"MODESTREAM_KEY": "ms_\u2603"}),
        ('{"hook_event_name": "Stop"}', {"MODESTREAM_USER": "\udcff"}),
    ],
    ids=["depth", "event name", "port", "key", "user"],
)
def test_any_failure_is_told_in_a_sentence(event: str, own: dict[str, str], tmp_path: Path) -> None:
    printed = run(tmp_path, "claude-code", said=event, **own).stderr
    assert printed.startswith("modestream: ")


def kept_box(tmp_path: Path, *lines: str, url: str = AWAY) -> Path:
    """Have the hook keep a session, and send it; return the file of its outbox."""
    transcript = tmp_path / "session.jsonl"
    transcript.write_text("".join(lines))
    event = {"hook_event_name": "Stop", "transcript_path": str(transcript)}
    run(tmp_path, "claude-code", said=json.dumps(event), MODESTREAM_URL=url)
    [kept] = (tmp_path / ".local/state/modestream/outbox").glob("*.sqlite")
    return kept


@pytest.mark.parametrize("command", ["status", "flush", "claude-code"])
def test_a_damaged_outbox_is_named_with_the_way_out(command: str, tmp_path: Path) -> None:
    damaged = kept_box(tmp_path, line(1))
    damaged.write_bytes(b"no database" * 500)
    told = run(tmp_path, command, said='{"hook_event_name": "Stop"}')
    assert f"{damaged} is damaged: move it away" in told.stdout + told.stderr


def test_a_damaged_outbox_hides_no_other(tmp_path: Path) -> None:
    damaged = kept_box(tmp_path, line(1))
    damaged.with_name("0.sqlite").write_bytes(b"no database" * 500)
    assert run(tmp_path, "status").stdout.startswith("1 turns wait in ")


def test_a_locked_outbox_does_not_hold_up_the_agent(tmp_path: Path) -> None:
    locked = kept_box(tmp_path, line(1))
    grown = tmp_path / "session.jsonl"
    grown.write_text(line(1) + line(2))
    event = {"hook_event_name": "UserPromptSubmit", "transcript_path": str(grown)}
    with closing(sqlite3.connect(locked, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        told = run(tmp_path, "claude-code", said=json.dumps(event))
        took_s = time.monotonic() - began
    assert "is locked by another process" in told.stderr
    assert took_s < 8


def test_what_a_locked_outbox_did_not_take_is_added_at_the_next_event(tmp_path: Path) -> None:
    locked = kept_box(tmp_path, line(1))
    with closing(sqlite3.connect(locked, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        kept_box(tmp_path, line(1), line(2))
    kept_box(tmp_path, line(1), line(2))
    assert run(tmp_path, "status").stdout.startswith("2 turns wait in ")


Answer = Callable[[str], tuple[int, Json | str]]
"""Status and body of an answer, by the path of the request."""


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """Serve HTTP that answers anything to any request; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            status, body = answer(self.path)
            content = (body if isinstance(body, str) else json.dumps(body)).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815 - as the library calls it

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def to_turns(status: int, body: Json | str) -> Answer:
    """Answer so to turns; anything else is well."""
    return lambda path: (200, {"principal": "ana"}) if path == "/v1/me" else (status, body)


UNKNOWN_KEY = {"code": "unauthenticated", "detail": "the key is unknown"}
ANSWERS: dict[str, Answer] = {
    "error": lambda _: (500, "boom"),
    "busy": lambda _: (429, {"code": "too_many_requests", "detail": "slow down"}),
    "key": lambda _: (401, UNKNOWN_KEY),
    "login page": lambda _: (200, "<h1>Log in</h1>"),
    "turn error": to_turns(500, "boom"),
    "turn not found": to_turns(404, "<h1>Not found</h1>"),
    "turn not allowed": to_turns(403, {"code": "not_allowed", "detail": "this key may only read"}),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_turns_wait_whatever_answers_instead_of_the_memory(answer: Answer, tmp_path: Path) -> None:
    with answering(answer) as url:
        kept_box(tmp_path, line(1), line(2), url=url)
    assert run(tmp_path, "status").stdout.startswith("2 turns wait in ")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (ANSWERS["key"], "the key is unknown; set MODESTREAM_KEY"),
        (ANSWERS["turn not allowed"], "this key may only read; set MODESTREAM_KEY"),
        (ANSWERS["turn error"], "an answer 500 without a reason"),
    ],
    ids=["key", "not allowed", "error"],
)
def test_status_says_why_turns_wait(answer: Answer, reason: str, tmp_path: Path) -> None:
    with answering(answer) as url:
        kept_box(tmp_path, line(1), url=url)
    assert reason in run(tmp_path, "status").stdout


REFUSED = to_turns(400, {"code": "invalid_value", "detail": "no such mode"})


def test_a_refused_turn_is_told(tmp_path: Path) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text(line(1))
    with answering(REFUSED) as url:
        event = {"hook_event_name": "Stop", "transcript_path": str(transcript)}
        told = run(tmp_path, "claude-code", said=json.dumps(event), MODESTREAM_URL=url)
    assert "1 were refused: `modestream hook status`" in told.stderr


def test_status_says_how_refused_turns_are_sent_again(tmp_path: Path) -> None:
    with answering(REFUSED) as url:
        kept_box(tmp_path, line(1), url=url)
    assert "`modestream hook flush --refused` sends them again" in run(tmp_path, "status").stdout


def test_a_session_that_begins_while_turns_wait_tells_the_user(tmp_path: Path) -> None:
    kept_box(tmp_path, line(1))
    told = json.loads(run(tmp_path, "claude-code", said='{"hook_event_name": "SessionStart"}').stdout)
    assert "1 turns wait in " in told["systemMessage"]
