"""Hooks of coding agents: messages of a session become turns, and a session starts with memories.

The agent calls `modestream hook claude-code` (or `codex`) with JSON on standard input: at the start and end of a
session, at each prompt, and when it stops. The agent's own transcript is the source: its new messages go to the outbox
of this machine, with the ids that an import of the transcript gives them, and from there to the gateway. Guaranteed: a
hook never fails because the service or the network is away, and never waits longer than `LIMIT_S`; each message is
stored once, also after an import of the same transcript.

The start of a session prints a context; prompts print nothing, as recall at every prompt distracts coding agents more
than it helps.
"""

import argparse
import asyncio
import getpass
import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from modestream_client.boundary import USER_BOUNDARY
from modestream_client.failures import MemoryClientError
from modestream_client.outbox import OF_THE_KEY, Outbox, Transcript, describe_problem

if TYPE_CHECKING:
    from modestream_client import HttpMemoryClient

Json = dict[str, Any]

Agent = Literal["claude-code", "codex"]

LIMIT_S = 5.0
"""Time limit of sending, and of a context, in seconds."""

LOCK_TIMEOUT_S = 2.0
"""How long an outbox is waited for that another process has locked."""

MISUSED = 2
"""Exit status of a wrong command line; agents take it as an order not to go on."""

KEY_ADVICE = "set MODESTREAM_KEY to a key that may write for this user"

MAX_SHOWN_LINES = 20
"""Lines of transcripts that the status names; it counts all that can't be stored."""

POLL_S = 0.05

CONTEXT_TOKENS = 1500
"""Tokens of the context at the start of a session."""

CONTEXT_QUERY = "{project}: decisions, conventions, preferences and open tasks"

EVENTS = {"SessionStart": True, "UserPromptSubmit": False, "Stop": True, "SessionEnd": True}
"""Events of a hook, and whether it sends at them: at a prompt the user waits."""


@dataclass(frozen=True, slots=True)
class HookSettings:
    """The user, the gateway, and the outbox folder of a hook."""

    url: str
    key: str | None
    user: str
    project: str
    outbox: Path
    has_tools: bool = False
    """Results of tools become turns, too."""

    @classmethod
    def of(cls, options: argparse.Namespace) -> "HookSettings":
        """Return the settings of a command line, completed from the environment."""
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        return cls(
            url=os.environ.get("MODESTREAM_URL", "http://127.0.0.1:8080"),
            key=os.environ.get("MODESTREAM_KEY"),
            user=options.user or os.environ.get("MODESTREAM_USER") or getpass.getuser(),
            project=options.project or os.environ.get("MODESTREAM_PROJECT") or "default",
            outbox=Path(os.environ.get("MODESTREAM_OUTBOX") or Path(state) / "modestream" / "outbox"),
            has_tools=options.tools,
        )


def collect(box: Outbox, path: Path, before: Transcript, settings: HookSettings) -> int:
    """Add the messages of a transcript since it was seen `before` to an outbox.

    Returns how many lines are left out that were not known to be: too long ones, and those that can't be understood.
    """
    from modestream_client.imports.transcripts import read_on  # noqa: PLC0415 - needs an extra

    if not path.is_file() or path.stat().st_size == before.bytes:
        # Nothing was said yet, or nothing more.
        return 0
    seen, messages, read_from, left_out = read_on(path, before)
    scope = {"user_id": settings.user, "project_id": settings.project}
    turns = [
        {"schema": "turn.v1", **message, "scope": scope}
        for message in messages
        if settings.has_tools or message["role"] in ("user", "assistant")
    ]
    return len(box.add_transcript(str(path), seen, turns, left_out, read_from))


def transcripts_of(event: Json, agent: Agent, box: Outbox) -> Iterator[tuple[Path, Transcript]]:
    """Yield the transcripts that may have grown, with their last known state.

    These are the session's own, and at the start of a session all earlier ones: a killed session sends no final event.
    """
    own = event.get("transcript_path")
    if not own and agent == "codex" and (thread := event.get("thread-id") or event.get("session_id")):
        home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
        own = next(iter(sorted((home / "sessions").glob(f"**/rollout-*{thread}.jsonl"))), None)
    known = box.transcripts()
    if isinstance(own, str | Path):
        own = Path(os.path.expanduser(own))  # noqa: PTH111 - of an unknown user it returns it as it is
        yield own, known.get(str(own), Transcript(agent))
    if event.get("hook_event_name") == "SessionStart":
        yield from ((Path(path), seen) for path, seen in known.items() if seen.format == agent and path != str(own))


async def run_event(event: Json, agent: Agent, settings: HookSettings) -> str:
    """Handle an event of an agent; return the text to print. Raises no error of the service."""
    began, left_out = time.time(), 0
    output: Json = {}
    with closing(Outbox(_path_of(settings), lock_timeout_s=LOCK_TIMEOUT_S)) as box:
        for path, before in transcripts_of(event, agent, box):
            try:
                left_out += collect(box, path, before, settings)
            except (OSError, ValueError, MemoryClientError) as problem:
                # Neither the others nor what waits are held up.
                sys.stderr.write(f"modestream: {path} is left out for now: {problem}\n")
        if left_out:
            lines = "1 new line of a transcript" if left_out == 1 else f"{left_out} new lines of transcripts"
            _tell(f"modestream: {lines} can't be stored: `modestream hook status` says why", output)
        # Codex' `notify` has no name of an event: a turn is complete.
        name = event.get("hook_event_name") or "Stop"
        if not EVENTS.get(name, False):
            return _printed(output)
        reason = None
        try:
            # Ends at once where the service is away.
            async with asyncio.timeout(LIMIT_S), _client(settings) as memory:
                await flush(settings, [box])
                if name == "SessionStart" and (context := await _context(memory, event, settings)):
                    output["hookSpecificOutput"] = {"hookEventName": name, "additionalContext": context}
        except TimeoutError:
            failure = box.failure()
            reason = failure[1] if failure and failure[0] > began else "the memory does not answer"
        # Anything, such as an address without a port: turns wait, and the agent goes on.
        except Exception as problem:
            reason = str(problem) or repr(problem)
            box.note_failure(reason)
        waiting, refused = box.count(), len(box.refused())
        if reason is not None or refused:
            left = f"{waiting} turns wait in {settings.outbox}, {refused} were refused: `modestream hook status`"
            is_shown = name == "SessionStart" and waiting + refused > 0 and "hookSpecificOutput" not in output
            _tell(f"modestream: {reason or 'not all turns were taken'}; {left}", output if is_shown else {})
        return _printed(output)


def _tell(sentence: str, output: Json) -> None:
    """Write a sentence to standard error, and into the field of an output that agents show to the user."""
    sys.stderr.write(f"{sentence}\n")
    output["systemMessage"] = "\n".join(filter(None, (output.get("systemMessage"), sentence)))


def _printed(output: Json) -> str:
    return json.dumps(output, ensure_ascii=False) if output else ""


async def flush(settings: HookSettings, boxes: Sequence[Outbox]) -> None:
    """Send all waiting turns."""
    if any(box.count() for box in boxes):
        async with _client(settings, settings.outbox):
            while any(box.count() for box in boxes):  # noqa: ASYNC110 - other processes send, too
                await asyncio.sleep(POLL_S)


async def _context(memory: "HttpMemoryClient", event: Json, settings: HookSettings) -> str:
    project = Path(event.get("cwd") or ".").name or settings.project
    context = await memory.assemble(
        CONTEXT_QUERY.format(project=project), budget_tokens=CONTEXT_TOKENS, append_query=False
    )
    if not context.references:
        return ""
    remembered = next(message["content"] for message in context.messages if message["role"] == "user")
    return f"From earlier conversations, as the memory of {settings.user} has it:\n{remembered}"


def _client(settings: HookSettings, outbox: Path | None = None) -> "HttpMemoryClient":
    from modestream_client import HttpMemoryClient  # noqa: PLC0415 - needs an extra

    return HttpMemoryClient(
        settings.url,
        key=settings.key,
        user_id=settings.user,
        project_id=settings.project,
        timeout=LIMIT_S,
        outbox=outbox,
    )


def _path_of(settings: HookSettings) -> Path:
    return Outbox.path_of(settings.outbox, USER_BOUNDARY.key_of(settings.user))


def _boxes(settings: HookSettings) -> tuple[list[Outbox], list[str]]:
    """Return the outboxes that can be read, and a sentence about each other one."""
    boxes, problems = [], []
    for path in sorted(settings.outbox.glob("*.sqlite")):
        try:
            box = Outbox(path, lock_timeout_s=LOCK_TIMEOUT_S)
            box.count()
            box.refused()
        except sqlite3.Error as problem:
            problems.append(describe_problem(path, problem))
        else:
            boxes.append(box)
    return boxes, problems


def _run_agent(agent: Agent, options: argparse.Namespace, settings: HookSettings) -> int:
    try:
        event = json.loads(options.event or sys.stdin.read())
        if not isinstance(event, dict):
            raise TypeError("an event is an object")  # noqa: TRY301 - as what is no JSON
    except (TypeError, ValueError, RecursionError) as problem:
        sys.stderr.write(f"modestream: a hook is called by {agent}, with an event as JSON: {problem}\n")
        return 1
    try:
        printed = asyncio.run(run_event(event, agent, settings))
    except sqlite3.Error as problem:
        sys.stderr.write(f"modestream: {describe_problem(_path_of(settings), problem)}\n")
        return 1
    # Whatever it is: the agent's turn goes on, and the transcript is read again at the next event.
    except Exception as problem:
        sys.stderr.write(f"modestream: {problem!r}; the messages of this event are added at the next one\n")
        return 1
    if printed:
        sys.stdout.write(printed + "\n")
    return 0


def _run_settings(agent: Agent) -> int:
    """Print the part of the agent's settings that calls the hook."""
    command = f"modestream hook {agent}"
    called = [{"hooks": [{"type": "command", "command": command, "timeout": 2 * int(LIMIT_S)}]}]
    events = [name for name in EVENTS if agent == "claude-code" or name != "SessionEnd"]
    sys.stdout.write(json.dumps({"hooks": dict.fromkeys(events, called)}, indent=2) + "\n")
    return 0


def _run_status(settings: HookSettings) -> int:
    """Print the turns that are not stored, and the way out; return 1 if one was refused, or a file can't be read."""
    boxes, problems = _boxes(settings)
    refused = [(box.path.name, queued) for box in boxes for queued in box.refused()]
    waiting = sum(box.count() for box in boxes)
    lines = [f"{waiting} turns wait in {settings.outbox}, {len(refused)} were refused", *problems]
    failures = [failure for box in boxes if box.count() and (failure := box.failure())]
    for at, error in failures[-1:]:
        when = datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")
        advice = f"; {KEY_ADVICE}" if error.startswith(OF_THE_KEY) else ""
        lines.append(f"last failure, {when}: {error}{advice}")
    if waiting:
        lines.append(f"they are sent to {settings.url} when the agent stops next, or by `modestream hook flush`")
    lines += [f"{name} {queued.number} {queued.turn.get('turn_id')}: {queued.refused}" for name, queued in refused]
    if refused:
        lines.append("when the reason is gone, `modestream hook flush --refused` sends them again")
    if left_out := [line for box in boxes for line in box.left_out()]:
        lines.append(f"{len(left_out)} lines of transcripts can't be stored:")
        lines += [f"{path}, at byte {at}: {reason}" for path, at, reason in left_out[-MAX_SHOWN_LINES:]]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if refused or problems else 0


def _run_flush(options: argparse.Namespace, settings: HookSettings) -> int:
    """Send waiting turns; with `--refused` also refused ones."""
    boxes, problems = _boxes(settings)
    if options.refused:
        for box in boxes:
            box.retry()
    try:
        asyncio.run(asyncio.wait_for(flush(settings, boxes), options.wait))
    except Exception as problem:
        sys.stderr.write(f"modestream: {str(problem) or 'the memory does not answer in time'}\n")
    _run_status(settings)
    return 1 if problems or any(box.count() for box in boxes) else 0


def add_hook_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands below `modestream hook`."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for agent in get_args(Agent):
        called = commands.add_parser(agent, help=f"called by {agent}, with an event on standard input")
        called.add_argument("event", nargs="?", help="the event, where the agent passes it as an argument")
        called.add_argument("--settings", action="store_true", help="print what to put into the agent's settings")
        called.add_argument("--tools", action="store_true", help="results of tools become turns, too")
    commands.add_parser("status", help="what waits in the outbox, and what was refused")
    sent = commands.add_parser("flush", help="send what waits")
    sent.add_argument("--wait", type=float, default=60.0, help="seconds (%(default)g)")
    sent.add_argument("--refused", action="store_true", help="try refused turns again")
    for command in commands.choices.values():
        command.add_argument("--user", help="whose memory (MODESTREAM_USER, else the login name)")
        command.add_argument("--project", help="the project of the turns (MODESTREAM_PROJECT, else default)")


def run_hook_command(options: argparse.Namespace) -> int:
    """Run a command; return the exit status, 0 also if the service is away."""
    if getattr(options, "settings", False):
        return _run_settings(options.command)
    settings = HookSettings.of(argparse.Namespace(**{"tools": False, **vars(options)}))
    if options.command == "status":
        return _run_status(settings)
    if options.command == "flush":
        return _run_flush(options, settings)
    return _run_agent(options.command, options, settings)


def main(arguments: Sequence[str] | None = None, prog: str = "modestream-hook") -> int:
    """Run `modestream-hook`; also `modestream hook`, which needs no settings of a worker."""
    parser = argparse.ArgumentParser(prog=prog, description="Hooks of coding agents.")
    add_hook_commands(parser)
    try:
        return run_hook_command(parser.parse_args(arguments))
    except SystemExit as end:
        return 1 if end.code == MISUSED else 0
