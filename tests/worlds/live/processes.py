"""Worker processes on a running broker."""

import asyncio
import json
import os
import secrets
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from aiokafka import AIOKafkaConsumer, TopicPartition
from modestream_client import MemoryClient

from streams.adapters.kafka.clients import committed_offsets
from streams.settings import Settings, worker_run_dir
from streams.topics import Topics, group_id, topics_with_prefix
from tests.worlds.live.forked import Forked

ROOT = Path(__file__).parents[3]
"""The directory that has `streams`."""

LOOK_EVERY_S = 0.05

START_S = 120.0
"""How long workers may take until they serve their partitions: alone on a machine some 10 s, beside others a minute."""

Json = dict[str, Any]


async def eventually(condition: Callable[[], Awaitable[object]], what: str, within_s: float = 120.0) -> None:
    """Poll until a condition holds. Raises AssertionError with `what` after `within_s`."""
    try:
        async with asyncio.timeout(within_s):
            while not await condition():
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        message = f"timeout after {within_s:g} s: {what}"
        raise AssertionError(message) from None


def spawn(command: str, log: Path, environment: Mapping[str, str]) -> Forked:
    """Start `python -m streams COMMAND`; its output is appended to the log."""
    return Forked(command, log, ROOT, {**os.environ, **environment})


class Worker:
    """One worker process. Its log file is next to its data directory."""

    def __init__(self, data_dir: Path, environment: Mapping[str, str]) -> None:
        self.data_dir = data_dir
        self.log = data_dir.with_name(f"{data_dir.name}-{secrets.token_hex(3)}.log")
        run = worker_run_dir(data_dir, environment.get("MODESTREAM_WORKER_ID"))
        self._port_file = run / "metrics.port"
        self._port_file.unlink(missing_ok=True)
        self._process = spawn("worker", self.log, {**environment, "MODESTREAM_DATA_DIR": str(data_dir)})

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def health(self) -> Json:
        """Return the health page; empty while the worker does not answer."""
        assert self.is_running, self.log.read_text()[-3000:]
        try:
            with urlopen(f"http://127.0.0.1:{int(self._port_file.read_text())}/health", timeout=5) as page:
                health: Json = json.load(page)
        except (OSError, ValueError):
            return {}
        return health

    def metrics(self) -> str:
        with urlopen(f"http://127.0.0.1:{int(self._port_file.read_text())}/metrics", timeout=5) as page:
            return str(page.read().decode())

    async def served_partitions(self) -> set[int]:
        """Return the partitions that it serves; none during recovery."""
        page = await asyncio.to_thread(self.health)
        return set(page["partitions"]) if page and not page["recovering"] else set()

    async def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(self._process.wait)

    def pause(self) -> None:
        """Stop the process where it is, until `resume`."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a paused process go on."""
        self._process.send_signal(signal.SIGCONT)

    async def ended(self, within_s: float) -> int:
        """Wait for the end of the process; return the exit code. Raises TimeoutExpired."""
        return await asyncio.to_thread(self._process.wait, within_s)

    async def terminate(self, within_s: float) -> int:
        """Send SIGTERM and return the exit code. Raises TimeoutExpired."""
        self._process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self._process.wait, within_s)

    def wipe(self) -> None:
        """Kill the process."""
        if self.is_running:
            self._process.kill()
        self._process.wait()


@dataclass
class Deployment:
    bootstrap: str
    directory: Path
    models: Path
    prefix: str = field(default_factory=lambda: f"test-{secrets.token_hex(4)}.")
    partitions: int = 2
    more: dict[str, str] = field(default_factory=dict)
    workers: list[Worker] = field(default_factory=list)

    @property
    def topics(self) -> Topics:
        return topics_with_prefix(self.prefix)

    @property
    def settings(self) -> Settings:
        return Settings(broker=f"kafka://{self.bootstrap}", topic_prefix=self.prefix, partitions=self.partitions)

    @property
    def environment(self) -> dict[str, str]:
        own = {
            "BROKER": f"kafka://{self.bootstrap}",
            "TOPIC_PREFIX": self.prefix,
            "PARTITIONS": str(self.partitions),
            "MODEL_DIR": str(self.models),
        }
        return {f"MODESTREAM_{name}": value for name, value in (own | self.more).items()}

    def start(self, name: str = "data", worker_id: str | None = None) -> Worker:
        """Start a worker on a data directory; several of one directory have an id each."""
        own = {} if worker_id is None else {"MODESTREAM_WORKER_ID": worker_id}
        worker = Worker(self.directory / name, self.environment | own)
        self.workers.append(worker)
        return worker

    async def ready(self, name: str = "data", within_s: float = START_S) -> Worker:
        """Start a worker and wait until it serves all partitions; one that ends is a failure at once."""
        worker = self.start(name)
        await self.served_by(worker, within_s=within_s)
        return worker

    async def serving(self) -> Worker:
        running = next((worker for worker in self.workers if worker.is_running), None)
        return running or await self.ready()

    async def served_by(self, *workers: Worker, within_s: float = START_S) -> None:
        """Wait until these workers serve all partitions, each at least one."""

        async def shared() -> bool:
            parts = [await worker.served_partitions() for worker in workers]
            return all(parts) and sum(map(len, parts)) == self.partitions == len(set().union(*parts))

        await eventually(shared, f"{len(workers)} workers serve {self.partitions} partitions", within_s)

    async def until_restored(self) -> None:
        running = [worker for worker in self.workers if worker.is_running]

        async def restored() -> bool:
            pages = [await asyncio.to_thread(worker.health) for worker in running]
            return all(page and "restoring_vectors" not in page for page in pages)

        await eventually(restored, "no vectors are restored")

    async def until_processed(self) -> None:
        """Wait until every record of every topic is processed, including derived ones."""
        names = self.topics
        read = names.consumed()
        places = [TopicPartition(topic, partition) for topic in read for partition in range(self.partitions)]

        async def rests() -> bool:
            # Read the commits first: a derived record is written before its cause is committed.
            committed = await committed_offsets(self.settings, group_id(self.settings))
            ends = await consumer.end_offsets(places)
            return all(committed.get(tuple(place), 0) >= end for place, end in ends.items())

        async with AIOKafkaConsumer(bootstrap_servers=self.bootstrap) as consumer:
            await eventually(rests, "every record is processed")

    def client(self, **how: Any) -> MemoryClient:
        """Return a client with a timeout that outlasts a restart."""
        return MemoryClient(self.bootstrap, **{"user_id": "u1", "topic_prefix": self.prefix, "timeout": 90.0, **how})


@contextmanager
def deployed(bootstrap: str, directory: Path, models: Path, **more: str) -> Iterator[Deployment]:
    deployment = Deployment(bootstrap, directory, models, more=more)
    try:
        yield deployment
    finally:
        for worker in deployment.workers:
            worker.wipe()
