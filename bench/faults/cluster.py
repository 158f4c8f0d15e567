"""Brokers and workers as processes of our own, each started again when it ends, unless it is held."""

import asyncio
import json
import os
import shutil
import signal
import sys
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from bench.faults.world import Models
from bench.harness.system import ROOT
from streams.up.broker import LOG4J_CONFIG, KafkaInstallation, is_broker_reachable, new_cluster_id, server_properties
from streams.up.installing import default_cache_dir, install_kafka
from streams.up.layout import Layout, free_port

RESTART_PAUSE_S = 0.5
POLL_S = 0.2
START_S = 300.0
WORKER = (sys.executable, "-m", "streams", "worker")


@dataclass
class KeptProcess:
    """One process, started again when it ends."""

    command: Sequence[str]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    ends: list[int] = field(default_factory=list)
    """The exit codes so far."""
    _process: asyncio.subprocess.Process | None = None
    _keeping: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """The pid; -1 between two starts."""
        return -1 if self._process is None else self._process.pid

    async def start(self) -> None:
        """Start it, and again whenever it ends."""
        self._process = await self._spawned()
        self._keeping = asyncio.create_task(self._keep())

    async def hold(self, number: signal.Signals = signal.SIGKILL) -> None:
        """End it by a signal, and leave it ended."""
        if self._keeping is not None:
            self._keeping.cancel()
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
            await self._process.wait()

    async def _keep(self) -> None:
        while self._process is not None:
            self.ends.append(await self._process.wait())
            await asyncio.sleep(RESTART_PAUSE_S)
            self._process = await self._spawned()

    async def _spawned(self) -> asyncio.subprocess.Process:
        with self.log.open("ab") as log:
            return await asyncio.create_subprocess_exec(
                *self.command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**_own_environment(), **self.environment},
                start_new_session=True,
            )


def _own_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("MODESTREAM_")}


@dataclass
class Node:
    """One broker, a controller too."""

    number: int
    port: int
    controller_port: int
    directory: Path
    process: KeptProcess | None = None

    @property
    def address(self) -> str:
        """Where clients reach it."""
        return f"127.0.0.1:{self.port}"


class Brokers:
    """A quorum of brokers on loopback; every topic is on all of them."""

    def __init__(self, directory: Path, count: int, installation: KafkaInstallation) -> None:
        self._cluster_id = new_cluster_id()
        self._installation = installation
        self.nodes = [
            Node(number, free_port(), free_port(), directory / f"broker-{number}") for number in range(1, count + 1)
        ]

    async def start(self) -> None:
        """Start all, and wait until they answer."""
        for node in self.nodes:
            await self.start_node(node)
        async with asyncio.timeout(START_S):
            while not all([await is_broker_reachable(node.address) for node in self.nodes]):  # noqa: ASYNC110 - it is polled
                await asyncio.sleep(POLL_S)

    async def start_node(self, node: Node) -> None:
        """Format its disk, if that is empty, and start it."""
        node.directory.mkdir(exist_ok=True)
        settings = node.directory / "server.properties"
        settings.write_text(self._settings(node))
        if not (node.directory / "log" / "meta.properties").exists():
            options = (f"--cluster-id={self._cluster_id}", "--ignore-formatted", "--config", str(settings))
            await self._run_once(node, self._command(node, "kafka.tools.StorageTool", "format", *options))
        node.process = KeptProcess(self._command(node, "kafka.Kafka", str(settings)), node.directory / "output")
        await node.process.start()

    async def _run_once(self, node: Node, command: Sequence[str]) -> None:
        with (node.directory / "output").open("ab") as log:
            process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
        if code := await process.wait():
            raise RuntimeError(f"{node.directory} can't be formatted: {code}")

    async def lose_disk(self, node: Node) -> None:
        """Kill a broker, remove all that it has, and start it again."""
        if node.process is not None:
            await node.process.hold()
        shutil.rmtree(node.directory / "log")
        await self.start_node(node)

    async def stop(self) -> None:
        """Kill all."""
        for node in self.nodes:
            if node.process is not None:
                await node.process.hold()

    def _command(self, node: Node, main: str, *arguments: str) -> list[str]:
        logging = node.directory / "log4j2.xml"
        logging.write_text(LOG4J_CONFIG)
        return self._installation.command(main, *arguments, logging=logging)

    def _settings(self, node: Node) -> str:
        count = len(self.nodes)
        own = {
            "node.id": node.number,
            "controller.quorum.voters": ",".join(f"{one.number}@127.0.0.1:{one.controller_port}" for one in self.nodes),
            "offsets.topic.replication.factor": count,
            "min.insync.replicas": max(1, count - 1),
        }
        # Of two lines for a name the last one counts.
        usual = server_properties(node.port, node.controller_port, node.directory / "log")
        return usual + "".join(f"{name}={value}\n" for name, value in own.items())


@dataclass
class Cluster:
    """Brokers and workers."""

    directory: Path
    brokers: Brokers
    workers: dict[str, KeptProcess] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    """Further settings of the workers."""

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers."""
        return ",".join(node.address for node in self.brokers.nodes)

    @property
    def url(self) -> str:
        """There is no gateway."""
        raise LookupError("a cluster of our own has no gateway")

    def own_settings(self, name: str) -> dict[str, str]:
        """Return the settings of a worker by name: it has a data directory of its own."""
        return {"MODESTREAM_DATA_DIR": str(self.directory / name)}

    def metrics_port(self, name: str) -> Path:
        """Return the file with the port of a worker's metrics."""
        return self.directory / name / "run" / "metrics.port"

    def pid(self, child: str) -> int:
        """Return the pid of a worker by name."""
        return self.workers[child].pid

    async def start_worker(
        self, name: str = "worker", command: Sequence[str] = WORKER, more: Mapping[str, str] | None = None
    ) -> KeptProcess:
        """Start a worker with its own settings, and with `more` of them."""
        settings = {
            "MODESTREAM_BROKER": "kafka://" + self.bootstrap.replace(",", ";"),
            "MODESTREAM_REPLICATION_FACTOR": str(len(self.brokers.nodes)),
            **self.own_settings(name),
        }
        added = {**Models.settings(), **self.settings, **(more or {})}
        worker = KeptProcess(command, self.directory / f"{name}.log", {**settings, **added})
        self.workers[name] = worker
        await worker.start()
        return worker

    async def served(self, name: str) -> int:
        """Return how many partitions a worker serves; 0 during recovery."""
        try:
            port = int(self.metrics_port(name).read_text())
            health = await asyncio.to_thread(_health, port)
        except (OSError, ValueError):
            return 0
        return 0 if health["recovering"] else len(health["partitions"])

    async def copies(self, name: str) -> dict[str, int | None]:
        """Return the copies that a worker keeps, each with the number of records that it lacks."""
        port = int(self.metrics_port(name).read_text())
        found: dict[str, int | None] = (await asyncio.to_thread(_health, port)).get("copies", {})
        return found

    async def embedded(self, name: str) -> int:
        """Return how many vectors a worker has written since its start."""
        port = int(self.metrics_port(name).read_text())
        page = await asyncio.to_thread(_read, f"http://127.0.0.1:{port}/metrics")
        rows = (row for row in page.splitlines() if row.startswith("modestream_embedded_total"))
        return sum(int(float(row.split()[-1])) for row in rows if 'status="ready"' in row)

    async def until_served(self, **partitions: int) -> None:
        """Wait until each worker serves so many partitions."""
        async with asyncio.timeout(START_S):
            while not all([await self.served(name) == count for name, count in partitions.items()]):  # noqa: ASYNC110 - it is polled
                await asyncio.sleep(POLL_S)


def _health(port: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_read(f"http://127.0.0.1:{port}/health"))
    return found


def _read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=5) as page:
        return str(page.read().decode())


AnyCluster = TypeVar("AnyCluster", bound=Cluster)


@asynccontextmanager
async def new_cluster(
    brokers: int = 1,
    command: Sequence[str] = WORKER,
    *,
    kind: type[AnyCluster] = Cluster,  # type: ignore[assignment]
    before_workers: Callable[[AnyCluster], Awaitable[None]] | None = None,
) -> AsyncIterator[AnyCluster]:
    """Run brokers, what `before_workers` starts, and one worker until the block ends."""
    with TemporaryDirectory(prefix="modestream-faults-") as name:
        directory = Path(name)
        layout = Layout(directory / "installation")
        layout.create()
        installation = await install_kafka(default_cache_dir(), layout, print)
        cluster = kind(directory, Brokers(directory, brokers, installation))
        async with AsyncExitStack() as stack:
            stack.push_async_callback(cluster.brokers.stop)
            await cluster.brokers.start()
            if before_workers is not None:
                await before_workers(cluster)
            await cluster.start_worker(command=command)
            stack.push_async_callback(_stop_workers, cluster)
            await cluster.until_served(worker=4)
            yield cluster


async def _stop_workers(cluster: Cluster) -> None:
    for worker in cluster.workers.values():
        await worker.hold()
