"""Workers as real processes, each with its data directory, on a broker that is there: started, watched, killed."""

import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from aiokafka import AIOKafkaConsumer, TopicPartition

from streams.adapters.kafka.admin import committed_offsets
from streams.client import MemoryClient
from streams.settings import Settings
from streams.topics import Topics, group_id, topics_with_prefix

ROOT = Path(__file__).parents[3]
"""Where `streams` is imported from."""

LOOK_EVERY_S = 0.05

Json = dict[str, Any]


async def eventually(condition: Callable[[], Awaitable[object]], what: str, within_s: float = 60.0) -> None:
    """Wait for what only asking can tell. Raises AssertionError with `what`."""
    try:
        async with asyncio.timeout(within_s):
            while not await condition():
                await asyncio.sleep(LOOK_EVERY_S)
    except TimeoutError:
        message = f"not so after {within_s:g} s: {what}"
        raise AssertionError(message) from None


class Worker:
    """One worker process. Its log stands beside its data directory."""

    def __init__(self, data_dir: Path, environment: Mapping[str, str]) -> None:
        self.data_dir = data_dir
        self.log = data_dir.with_name(f"{data_dir.name}-{secrets.token_hex(3)}.log")
        self._port_file.unlink(missing_ok=True)
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                (sys.executable, "-m", "streams", "worker"),
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, **environment, "MODESTREAM_DATA_DIR": str(data_dir)},
                start_new_session=True,
            )

    @property
    def _port_file(self) -> Path:
        return self.data_dir / "run" / "metrics.port"

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def health(self) -> Json:
        """What it says of itself; nothing while it does not answer."""
        assert self.is_running, self.log.read_text()[-3000:]
        try:
            with urlopen(f"http://127.0.0.1:{int(self._port_file.read_text())}/health", timeout=5) as page:
                told: Json = json.load(page)
        except (OSError, ValueError):
            return {}
        return told

    async def serves(self) -> set[int]:
        """The partitions that it serves now; none while it recovers."""
        told = await asyncio.to_thread(self.health)
        return set(told["partitions"]) if told and not told["recovering"] else set()

    async def kill(self) -> None:
        """Kill it."""
        self._process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(self._process.wait)

    async def terminate(self, within_s: float) -> int:
        """Ask it to end, and give its exit code; raises TimeoutExpired."""
        self._process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self._process.wait, within_s)

    def wipe(self) -> None:
        """Leave nothing running."""
        if self.is_running:
            self._process.kill()
        self._process.wait()


@dataclass
class Deployment:
    """A broker's corner for one test: topics, a consumer group and workers of its own."""

    bootstrap: str
    directory: Path
    models: Path
    prefix: str = field(default_factory=lambda: f"test-{secrets.token_hex(4)}.")
    partitions: int = 4
    more: dict[str, str] = field(default_factory=dict)
    workers: list[Worker] = field(default_factory=list)

    @property
    def topics(self) -> Topics:
        """Its topics by name."""
        return topics_with_prefix(self.prefix)

    @property
    def settings(self) -> Settings:
        """The settings of its workers, as far as they concern Kafka."""
        return Settings(broker=f"kafka://{self.bootstrap}", topic_prefix=self.prefix, partitions=self.partitions)

    @property
    def environment(self) -> dict[str, str]:
        """The settings as a worker reads them."""
        own = {
            "BROKER": f"kafka://{self.bootstrap}",
            "TOPIC_PREFIX": self.prefix,
            "PARTITIONS": str(self.partitions),
            "MODEL_DIR": str(self.models),
        }
        return {f"MODESTREAM_{name}": value for name, value in (own | self.more).items()}

    def start(self, name: str = "data") -> Worker:
        """Start a worker on a data directory, the same again or a new one."""
        worker = Worker(self.directory / name, self.environment)
        self.workers.append(worker)
        return worker

    async def ready(self, name: str = "data") -> Worker:
        """Start a worker that has all partitions, and wait until it serves them."""
        worker = self.start(name)
        await self.served_by(worker)
        return worker

    async def served_by(self, *workers: Worker) -> None:
        """Wait until these workers share all partitions, each with some."""

        async def shared() -> bool:
            parts = [await worker.serves() for worker in workers]
            return all(parts) and sum(map(len, parts)) == self.partitions == len(set().union(*parts))

        await eventually(shared, f"{len(workers)} workers serve {self.partitions} partitions")

    async def at_rest(self) -> None:
        """Wait until every record of every topic that workers read is dealt with, and what came of it too."""
        names = self.topics
        read = [topic for topic in names.all() if topic not in (names.replies, names.dead_letters)]
        places = [TopicPartition(topic, partition) for topic in read for partition in range(self.partitions)]

        async def rests() -> bool:
            # What is committed first: a record that comes of another is written before that is committed.
            committed = await committed_offsets(self.settings, group_id(self.settings))
            ends = await consumer.end_offsets(places)
            return all(committed.get(tuple(place), 0) >= end for place, end in ends.items())

        async with AIOKafkaConsumer(bootstrap_servers=self.bootstrap) as consumer:
            await eventually(rests, "every record is dealt with")

    def client(self, **how: Any) -> MemoryClient:
        """A client that waits out a restart."""
        return MemoryClient(self.bootstrap, **{"user_id": "u1", "topic_prefix": self.prefix, "timeout": 90.0, **how})


@contextmanager
def deployed(bootstrap: str, directory: Path, models: Path, **more: str) -> Iterator[Deployment]:
    """A corner of a broker; none of its workers is left afterwards, however the test ends."""
    deployment = Deployment(bootstrap, directory, models, more=more)
    try:
        yield deployment
    finally:
        for worker in deployment.workers:
            worker.wipe()
