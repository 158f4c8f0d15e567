"""An outbox while worker, gateway and the program that has it are killed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer

from tests.worlds.live.gateways import gateway_on
from tests.worlds.live.processes import Deployment

TURNS = 150
KILLED_AT = (20, 60, 100)
"""Turns that the program has said when it is killed; between the first two the gateway is away."""

PROGRAM = """
import sys
from modestream_client import SyncHttpMemoryClient
url, folder, first, turns = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with SyncHttpMemoryClient(url, user_id="ana", outbox=folder, timeout=2) as memory:
    for number in range(first, turns):
        memory.remember(f"Crate {number} is in the hall.", turn_id=f"t-{number}", conversation_id="c1")
        print(number, flush=True)
"""


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
    """Return the ids of all turns on the topic, in their order, without repetitions."""
    ids: dict[str, None] = {}
    options = {"bootstrap_servers": deployment.bootstrap, "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer(deployment.topics.turns, **options) as consumer:
        while batch := await consumer.getmany(timeout_ms=3000):
            for record in (record for records in batch.values() for record in records):
                ids[json.loads(record.value)["turn_id"]] = None
    return list(ids)


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
        await worker.kill()
        deployment.start()
        await program.run(KILLED_AT[2])
        await program.run()

        env = {**os.environ, "MODESTREAM_URL": str(http.base_url), "MODESTREAM_OUTBOX": str(tmp_path / "outbox")}
        command = "import sys; from modestream_client.hooks import main; sys.exit(main())"
        flushed = await asyncio.create_subprocess_exec(sys.executable, "-c", command, "flush", env=env)
        assert await flushed.wait() == 0
        listed = await http.get("/v1/users/ana/memories", params={"limit": 200, "types": "episodic"})
        texts = [item["text"] for item in listed.json()["items"]]
    assert await written(deployment) == [f"t-{number}" for number in range(TURNS)]
    assert sorted(texts) == sorted(f"Crate {number} is in the hall." for number in range(TURNS))
