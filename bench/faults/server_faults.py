"""A Qdrant server that is killed, stopped or away while turns arrive.

The server is `tests.fakes.qdrant_server`, which speaks Qdrant's gRPC over the embedded engine, as no Qdrant is at hand:
what is lost or doubled is the system's doing, what takes how long says nothing about Qdrant.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.faults.cluster import Cluster, KeptProcess, new_cluster
from bench.faults.load import Load
from bench.faults.row import Fault
from bench.faults.world import World
from streams.up.layout import free_port

PAUSE_S, AWAY_S = 20.0, 120.0
SERVER_LOG, SERVER_DATA = "qdrant.log", "qdrant"


class ServerCluster(Cluster):
    """A broker, workers and a Qdrant server."""

    server: KeptProcess

    async def start_server(self) -> None:
        """Start the server, and have the workers use it."""
        port = free_port()
        command = (sys.executable, "-m", "tests.fakes.qdrant_server", "--port", str(port))
        data = ("--directory", str(self.directory / SERVER_DATA))
        self.settings |= {"MODESTREAM_QDRANT_URL": f"http://127.0.0.1:{port}", "MODESTREAM_QDRANT_GRPC_PORT": str(port)}
        self.server = KeptProcess((*command, *data), self.directory / SERVER_LOG)
        await self.server.start()


@asynccontextmanager
async def new_server_cluster() -> AsyncIterator[ServerCluster]:
    """Run a broker, a worker and a server until the block ends."""
    async with new_cluster(kind=ServerCluster, before_workers=ServerCluster.start_server) as cluster:
        try:
            yield cluster
        finally:
            await cluster.server.hold()


async def kill_server(world: World, _load: Load) -> str:
    """Kill it; it is started again."""
    assert isinstance(world, ServerCluster)
    os.kill(world.server.pid, signal.SIGKILL)
    return ""


async def stop_server(world: World, _load: Load) -> str:
    """Let it accept requests and not answer."""
    assert isinstance(world, ServerCluster)
    os.kill(world.server.pid, signal.SIGSTOP)
    await asyncio.sleep(PAUSE_S)
    os.kill(world.server.pid, signal.SIGCONT)
    return ""


async def take_server_away(world: World, _load: Load) -> str:
    """Kill it and start it again after minutes."""
    assert isinstance(world, ServerCluster)
    await world.server.hold()
    await asyncio.sleep(AWAY_S)
    await world.server.start()
    return ""


async def move_partitions(world: World, _load: Load) -> str:
    """Let a second worker join, and kill it for good: vectors stay on the server."""
    assert isinstance(world, ServerCluster)
    second = await world.start_worker("second")
    await world.until_served(worker=2, second=2)
    await second.hold(signal.SIGKILL)
    await world.until_served(worker=4)
    return ""


SERVER_FAULTS = [
    Fault("Qdrant server, `kill -9`", new_server_cluster, kill_server),
    Fault(f"Qdrant server, SIGSTOP for {PAUSE_S:g} s", new_server_cluster, stop_server),
    Fault(f"Qdrant server away for {AWAY_S:g} s", new_server_cluster, take_server_away),
    Fault("one of two workers on a Qdrant server, `kill -9`", new_server_cluster, move_partitions),
]
