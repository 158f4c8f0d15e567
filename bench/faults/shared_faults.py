"""Two workers of one data directory, one of which is killed or stands still."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from bench.faults.cluster import Cluster, new_cluster
from bench.faults.load import Load
from bench.faults.row import Act, Fault
from bench.faults.world import World

STOP_S, LONG_STOP_S = 20.0, 90.0
"""Longer than the session of a worker, 12 s; and as long as a machine that pages or a forgotten debugger."""


class SharedCluster(Cluster):
    """Workers of one data directory, each with an id of its own."""

    def own_settings(self, name: str) -> dict[str, str]:
        """Return the settings of a worker by name."""
        return {"MODESTREAM_DATA_DIR": str(self.directory / "shared"), "MODESTREAM_WORKER_ID": name}

    def metrics_port(self, name: str) -> Path:
        """Return the file with the port of a worker's metrics."""
        return self.directory / "shared" / "run" / f"worker-{name}" / "metrics.port"


async def both_serve(world: World) -> None:
    """Wait until each has its partitions: the fault before this one may have ended one."""
    assert isinstance(world, SharedCluster)
    await world.until_served(worker=2, second=2)


async def kill(world: World, _load: Load) -> str:
    """Kill the second worker; it is started again."""
    await both_serve(world)
    os.kill(world.pid("second"), signal.SIGKILL)
    return ""


def stopped(seconds: float) -> Act:
    """Return the fault of a second worker that stands still with its partitions."""

    async def act(world: World, _load: Load) -> str:
        await both_serve(world)
        pid = world.pid("second")
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(seconds)
        ended = world.pid("second") != pid
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
        return "it was ended while it stood still" if ended else ""

    return act


@asynccontextmanager
async def new_shared() -> AsyncIterator[Cluster]:
    """Run one broker, and two workers of one data directory."""
    async with new_cluster(kind=SharedCluster) as cluster:
        await cluster.start_worker("second")
        await cluster.until_served(worker=2, second=2)
        yield cluster


SHARED_FAULTS = [
    Fault("one of two workers of a data directory, `kill -9`", new_shared, kill),
    Fault(f"one of two workers of a data directory, SIGSTOP for {STOP_S:g} s", new_shared, stopped(STOP_S)),
    Fault(f"one of two workers of a data directory, SIGSTOP for {LONG_STOP_S:g} s", new_shared, stopped(LONG_STOP_S)),
]
