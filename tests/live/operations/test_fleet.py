"""Two workers of one data directory under a supervisor: a rolling restart and a kill lose nothing, nothing is left."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from streams.settings import shared_embedder_dir
from streams.up.child import read_pid
from streams.up.layout import Layout
from streams.up.supervised import fetch
from tests.worlds.live.flow import Flow
from tests.worlds.live.processes import ROOT, Deployment, eventually

TURNS = 40


class Supervisor:
    def __init__(self, layout: Layout, partitions: int, process: asyncio.subprocess.Process) -> None:
        self.layout = layout
        self.process = process
        self._partitions = partitions

    async def serves_all(self) -> bool:
        answer = await fetch(self.layout.workers_port, "/health")
        workers = json.loads(answer[1])["workers"] if answer else {}
        parts = [
            set() if worker is None or worker["recovering"] else set(worker["partitions"])
            for worker in workers.values()
        ]
        return len(parts) == 2 and all(parts) and sum(map(len, parts)) == self._partitions

    def embedders(self) -> set[int]:
        locks = shared_embedder_dir(self.layout.data_dir).glob("*.lock")
        return {pid for lock in locks if (pid := read_pid(lock)) is not None and is_running(pid)}


def is_running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def model_of(pid: int) -> str:
    options = json.loads(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[3])
    return json.dumps(options["model"])


@pytest.fixture
async def supervisor(deployment: Deployment) -> AsyncIterator[Supervisor]:
    deployment.partitions = 4
    layout = Layout(deployment.directory / "data")
    layout.create()
    environment = {**os.environ, **deployment.environment, "MODESTREAM_DATA_DIR": str(layout.data_dir)}
    with layout.log("supervisor").open("wb") as log:
        command = (sys.executable, "-m", "streams", "worker", "--processes", "2")
        process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    started = Supervisor(layout, deployment.partitions, process)
    yield started
    if process.returncode is None:
        process.terminate()
        await process.wait()


async def test_rolling_restart_and_kill_lose_nothing(deployment: Deployment, supervisor: Supervisor) -> None:
    layout = supervisor.layout
    await eventually(supervisor.serves_all, "two workers serve", within_s=120)
    embedders = supervisor.embedders()
    assert len(set(map(model_of, embedders))) == len(embedders) > 0
    before = [read_pid(layout.pid_file(name)) for name in ("worker", "worker-2")]
    async with deployment.client() as client:
        flow = Flow(client)
        publishing = asyncio.create_task(flow.publish(range(TURNS)))
        await flow.until_accepted(TURNS // 4)
        restart = (sys.executable, "-m", "streams", "restart", "--data-dir", str(layout.data_dir))
        assert await asyncio.to_thread(subprocess.call, restart, cwd=ROOT) == 0
        restarted = [read_pid(layout.pid_file(name)) for name in ("worker", "worker-2")]
        assert not set(before) & set(restarted)
        assert supervisor.embedders() >= embedders
        await flow.publish(range(TURNS, 2 * TURNS))
        assert restarted[0] is not None
        os.killpg(restarted[0], signal.SIGKILL)
        await publishing
        await eventually(supervisor.serves_all, "two workers serve again", within_s=120)
        assert supervisor.embedders() >= embedders
        await flow.embedded()
        await flow.check()
    supervisor.process.terminate()
    assert await asyncio.wait_for(supervisor.process.wait(), 60) == 0
    assert not supervisor.embedders()
    assert not list(layout.run.glob("worker*.pid"))
