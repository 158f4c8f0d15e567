"""The hook of coding agents as a program: its status, its advice, and an outbox that is damaged, locked or refused."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from modestream_client.hooks import main

from tests.builders.transcripts import line, written_session

Json = dict[str, Any]

AWAY = "http://127.0.0.1:1"


def environment_of(tmp_path: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Return an environment with the outbox in a folder, and no memory."""
    own = {"HOME": str(tmp_path), "MODESTREAM_URL": AWAY, "MODESTREAM_USER": "ana", "PATH": "/usr/bin:/bin"}
    return own | dict(more)


def run(tmp_path: Path, *arguments: str, said: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """Run the hook's command in this process: another one takes half a second to import it."""
    with (
        pytest.MonkeyPatch.context() as patched,
        redirect_stdout(StringIO()) as out,
        redirect_stderr(StringIO()) as err,
    ):
        for name in [name for name in os.environ if name.startswith("MODESTREAM_")]:
            patched.delenv(name)
        for name, value in environment_of(tmp_path, more).items():
            patched.setenv(name, value)
        patched.setattr(sys, "stdin", StringIO(said))
        status = main(arguments)
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


def run_program(tmp_path: Path, *arguments: str, said: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """Run the hook as an agent does."""
    command = "import sys; from modestream_client.hooks import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", command, *arguments],
        input=said,
        env=environment_of(tmp_path, more),
        capture_output=True,
        text=True,
        check=False,
    )


def stop(tmp_path: Path, *lines: str, url: str = AWAY) -> subprocess.CompletedProcess[str]:
    """Tell the hook that an agent with this session has stopped."""
    event = {"hook_event_name": "Stop", "transcript_path": str(written_session(tmp_path, *lines))}
    return run(tmp_path, "claude-code", said=json.dumps(event), MODESTREAM_URL=url)


def kept_box(tmp_path: Path, *lines: str, url: str = AWAY) -> Path:
    """Have the hook keep a session, and send it; return the file of its outbox."""
    stop(tmp_path, *lines, url=url)
    [kept] = (tmp_path / ".local/state/modestream/outbox").glob("*.sqlite")
    return kept


def test_a_hook_succeeds_while_the_memory_is_away(tmp_path: Path) -> None:
    event = {"hook_event_name": "Stop", "transcript_path": str(written_session(tmp_path, line(1)))}
    assert run_program(tmp_path, "claude-code", said=json.dumps(event)).returncode == 0


def test_status_counts_what_waits(tmp_path: Path) -> None:
    kept_box(tmp_path, line(1), line(2))
    assert run(tmp_path, "status").stdout.startswith("2 turns wait in ")


def test_a_flush_that_can_not_send_says_so(tmp_path: Path) -> None:
    kept_box(tmp_path, line(1))
    assert run(tmp_path, "flush", "--wait", "0.5").returncode == 1


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
    kept_box(tmp_path, line(1))
    assert "does not answer in time" in run(tmp_path, "flush", "--wait", "0.5").stderr


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


def test_the_status_of_a_command_is_that_of_the_program(tmp_path: Path) -> None:
    assert run_program(tmp_path, "claud-code", said="{}").returncode == 1


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
    grown = written_session(tmp_path, line(1), line(2))
    event = {"hook_event_name": "UserPromptSubmit", "transcript_path": str(grown)}
    with closing(sqlite3.connect(locked, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        began = time.monotonic()
        told = run_program(tmp_path, "claude-code", said=json.dumps(event))
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
    with answering(REFUSED) as url:
        told = stop(tmp_path, line(1), url=url)
    assert "1 were refused: `modestream hook status`" in told.stderr


def test_status_says_how_refused_turns_are_sent_again(tmp_path: Path) -> None:
    with answering(REFUSED) as url:
        kept_box(tmp_path, line(1), url=url)
    assert "`modestream hook flush --refused` sends them again" in run(tmp_path, "status").stdout


def test_a_session_that_begins_while_turns_wait_tells_the_user(tmp_path: Path) -> None:
    kept_box(tmp_path, line(1))
    told = json.loads(run(tmp_path, "claude-code", said='{"hook_event_name": "SessionStart"}').stdout)
    assert "1 turns wait in " in told["systemMessage"]
