"""An Apache Kafka broker as a child process, on loopback, with its records below `DIR/kafka`.

Guaranteed: acknowledged records survive a kill and a restart on the same directory.
"""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError

from schemas.failures import Unavailable
from streams.up.broker_settings import LOG4J_CONFIG, new_cluster_id, server_properties
from streams.up.child import Child
from streams.up.installation import KafkaInstallation
from streams.up.layout import Layout
from streams.up.ports import free_port

STOP_TIMEOUT_S = 20.0
"""How long the broker may take to flush and end before it is killed."""

START_TIMEOUT_S = 120.0
"""How long a start may take, recovery of every log after a crash included."""

START_POLL_INTERVAL_S = 0.05
"""The pause between two checks of a starting broker."""

METADATA_TIMEOUT_MS = 5000
"""Limit of one metadata request; callers that wait for a broker retry."""


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
            await self._format()

    async def start(self) -> Child:
        """Start the process; `wait_until_answering` tells when it serves requests. Raises OSError."""
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

    async def _format(self) -> None:
        options = (f"--cluster-id={new_cluster_id()}", "--ignore-formatted", "--config", str(self._configure()))
        child = await self._child("kafka.tools.StorageTool", "format", *options)
        try:
            code = await child.wait()
        except asyncio.CancelledError:
            await child.stop(0)
            raise
        if code:
            raise Unavailable(f"Kafka's storage can't be formatted (code {code}), see {self._layout.log('broker')}")

    def _configure(self) -> Path:
        """Write the settings. The controller gets any free port, as no client needs it."""
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
        return await _has_brokers(AIOKafkaClient(bootstrap_servers=bootstrap, request_timeout_ms=METADATA_TIMEOUT_MS))
    except (OSError, KafkaError):
        return False


async def _has_brokers(client: AIOKafkaClient) -> bool:
    try:
        await client.bootstrap()
        return bool(client.cluster.brokers())
    finally:
        await client.close()
