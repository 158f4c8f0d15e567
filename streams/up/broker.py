"""A real Apache Kafka broker as a child process, on loopback.

Enters: a data directory and a port. Leaves: a broker that answers, its records below `DIR/kafka`. Guaranteed: what it
acknowledged is there again after it was killed and started on the same directory.
"""

import asyncio
from contextlib import suppress
from pathlib import Path

from schemas.failures import Unavailable
from streams.up.answers import is_broker_reachable
from streams.up.broker_settings import LOG4J_CONFIG, new_cluster_id, server_properties
from streams.up.child import Child
from streams.up.installation import KafkaInstallation
from streams.up.layout import Layout
from streams.up.ports import free_port

STOP_TIMEOUT_S = 20.0
"""How long the broker may take to write what it holds before it is killed."""

START_TIMEOUT_S = 120.0
"""How long a start may take, recovery of every log after a crash included, before it counts as failed."""

START_POLL_INTERVAL_S = 0.05
"""The pause between two looks at a broker that starts."""


class KafkaBroker:
    """One broker on `127.0.0.1:port` that keeps its records in a data directory."""

    def __init__(self, layout: Layout, port: int, installation: KafkaInstallation) -> None:
        self._layout = layout
        self._port = port
        self._installation = installation

    @property
    def bootstrap(self) -> str:
        """The address for clients."""
        return f"127.0.0.1:{self._port}"

    async def format(self) -> None:
        """Lay out the storage, unless it is. Raises Unavailable."""
        # Kafka writes this file last, so that a half-laid-out storage is laid out again.
        if not (self._layout.kafka / "meta.properties").is_file():
            await self._format()

    async def start(self) -> Child:
        """Start it, which does not mean that it answers: see `wait_until_answering`. Raises OSError."""
        return await self._child("kafka.Kafka", str(self._configure()))

    async def wait_until_answering(self, child: Child) -> bool:
        """Wait until it answers a request; False when it ends or takes too long instead."""
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
            reason = f"Kafka's storage can't be prepared (code {code}), see {self._layout.log('broker')}"
            raise Unavailable(reason)

    def _configure(self) -> Path:
        """Write the settings. The controller gets any port that is free now, since nobody else needs to know it."""
        settings = self._layout.run / "server.properties"
        settings.write_text(server_properties(self._port, free_port(), self._layout.kafka), encoding="utf-8")
        return settings

    async def _child(self, main: str, *arguments: str) -> Child:
        logging = self._layout.run / "log4j2.xml"
        logging.write_text(LOG4J_CONFIG, encoding="utf-8")
        command = self._installation.command(main, *arguments, logging=logging)
        return await Child.start(self._layout, "broker", command, {})
