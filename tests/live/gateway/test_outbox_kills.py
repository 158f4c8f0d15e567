"""An outbox while worker, gateway and the program that has it are killed; `TEST_KILLED_TURNS=1000`: a long run."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from modestream_client import HttpMemoryClient

from tests.worlds.live.gateways import gateway_on
from tests.worlds.live.processes import Deployment

TURNS = int(os.environ.get("TEST_KILLED_TURNS", "150"))
KILLED_AT = (TURNS // 7, TURNS * 2 // 5, TURNS * 3 // 5, TURNS * 4 // 5)
"""Turns that the program has said when it is killed."""

PROGRAM = """
import sys
from modestream_client import SyncHttpMemoryClient
url, folder, first, turns = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with SyncHttpMemoryClient(url, user_id="ana", outbox=folder, timeout=2) as memory:
    for number in range(first, turns):
        memory.remember(f"Crate {number} is in the hall.", turn_id=f"t-{number}", conversation_id="c1")
        print(number, flush=True)
"""

HOOK = "import sys; from modestream_client.hooks import main; sys.exit(main())"

SAID_BETWEEN_CALLS = 10
"""Messages of a session between two calls of its hook."""


class Program:
    """A program that remembers, and begins again behind the last turn that it was told of."""

    def __init__(self, *command: str) -> None:
        self._command = command
        self.said = 0

    async def run(self, kill_at: int = TURNS) -> None:
        """Run until it has said this many turns, then kill it; at the end it ends by itself."""
        program = await asyncio.create_subprocess_exec(
            *self._command, str(self.said), str(TURNS), stdout=subprocess.PIPE, env=os.environ
        )
        assert program.stdout is not None
        while line := await program.stdout.readline():
            self.said = int(line) + 1
            if self.said == kill_at < TURNS:
                program.send_signal(signal.SIGKILL)
        await program.wait()


async def written(deployment: Deployment) -> list[str]:
    """Return the texts of all turns on the topic, in their order, without repetitions."""
    texts: dict[str, str] = {}
    options = {"bootstrap_servers": deployment.bootstrap, "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer(deployment.topics.turns, **options) as consumer:
        while batch := await consumer.getmany(timeout_ms=3000):
            for record in (record for records in batch.values() for record in records):
                turn = json.loads(record.value)
                texts.setdefault(turn["turn_id"], turn["content"])
    return list(texts.values())


async def stored(url: str) -> list[str]:
    async with HttpMemoryClient(url, user_id="ana") as memory:
        return [item.text async for item in memory.iter_memories(types=["episodic"])]


def hook_environment(url: str, tmp_path: Path) -> dict[str, str]:
    own = {"MODESTREAM_URL": url, "MODESTREAM_OUTBOX": str(tmp_path / "outbox"), "MODESTREAM_USER": "ana"}
    return {**os.environ, **own}


async def flush(env: dict[str, str]) -> int:
    """Send what waits; return the exit status."""
    flushed = await asyncio.create_subprocess_exec(sys.executable, "-c", HOOK, "flush", "--wait", "280", env=env)
    return await flushed.wait()


SAID = [f"Crate {number} is in the hall." for number in range(TURNS)]


@pytest.fixture(params=["python", "typescript"])
def client(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """The command of a program with a client, without its arguments."""
    if request.param == "python":
        return sys.executable, "-c", PROGRAM
    built: Path = request.getfixturevalue("typescript_client")
    return "node", str(built / "dist" / "test" / "kills.js")


async def test_each_turn_is_written_in_order_whatever_is_killed(
    client: tuple[str, ...], deployment: Deployment, tmp_path: Path
) -> None:
    worker = await deployment.ready()
    async with gateway_on(deployment.environment, tmp_path) as (gateway, http):
        program = Program(*client, str(http.base_url), str(tmp_path / "outbox"))
        await program.run(KILLED_AT[0])
        gateway.kill()
        await program.run(KILLED_AT[1])
        gateway.start()
        await gateway.has_status(http, "/ready", 200)
        await worker.kill()
        worker = deployment.start()
        # As on a network that swallows everything: connections are accepted, and nothing is answered.
        gateway.process.send_signal(signal.SIGSTOP)
        await program.run(KILLED_AT[2])
        gateway.process.send_signal(signal.SIGCONT)
        await program.run(KILLED_AT[3])
        # The machine: the program was killed just now.
        gateway.kill()
        await worker.kill()
        gateway.start()
        deployment.start()
        await program.run()

        assert await flush(hook_environment(str(http.base_url), tmp_path)) == 0
        texts = await stored(str(http.base_url))
    assert await written(deployment) == SAID
    assert sorted(texts) == sorted(SAID)


def line(number: int) -> str:
    """A line of a session of Claude Code."""
    role = ("user", "assistant")[number % 2]
    at = datetime(2026, 3, 5, tzinfo=UTC) + timedelta(seconds=number)
    about = {"type": role, "uuid": f"m{number}", "sessionId": "s1", "timestamp": at.isoformat(), "cwd": "/src"}
    return json.dumps(about | {"message": {"role": role, "content": SAID[number]}}) + "\n"


async def test_each_message_of_a_session_is_written_in_order_whatever_is_killed(
    deployment: Deployment, tmp_path: Path
) -> None:
    """Every third call of the hook is killed, after a random part of its work."""
    chance, transcript = random.Random(7), tmp_path / "session.jsonl"
    worker = await deployment.ready()
    async with gateway_on(deployment.environment, tmp_path) as (gateway, http):
        env = hook_environment(str(http.base_url), tmp_path)
        for call, first in enumerate(range(0, TURNS, SAID_BETWEEN_CALLS)):
            with transcript.open("a") as session:
                session.writelines(line(number) for number in range(first, min(first + SAID_BETWEEN_CALLS, TURNS)))
            if call % 15 == 3:
                gateway.kill()
            elif call % 15 == 6:
                gateway.start()
            elif call % 15 == 9:
                await worker.kill()
                worker = deployment.start()
            event = {"hook_event_name": ("UserPromptSubmit", "Stop")[call % 2], "transcript_path": str(transcript)}
            hook = await asyncio.create_subprocess_exec(
                sys.executable, "-c", HOOK, "claude-code", json.dumps(event), env=env
            )
            if call % 3 == 1:
                with suppress(TimeoutError):
                    await asyncio.wait_for(hook.wait(), chance.uniform(0.1, 1.5))
                with suppress(ProcessLookupError):
                    hook.kill()
            await hook.wait()
        await gateway.has_status(http, "/ready", 200)
        event = {"hook_event_name": "SessionEnd", "transcript_path": str(transcript)}
        hook = await asyncio.create_subprocess_exec(
            sys.executable, "-c", HOOK, "claude-code", json.dumps(event), env=env
        )
        await hook.wait()
        assert await flush(env) == 0
        texts = await stored(str(http.base_url))
    assert await written(deployment) == SAID
    assert sorted(texts) == sorted(SAID)
