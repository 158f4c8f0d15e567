"""A supervised broker, workers and gateway: the broker first, the others once the broker answers."""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Never

from dotenv import dotenv_values

from schemas.failures import Unavailable
from streams.up.broker import STOP_TIMEOUT_S, KafkaBroker
from streams.up.child import Child
from streams.up.console import PrintLine, print_line
from streams.up.fleet import Fleet, FleetOptions, rotate_logs, run_together
from streams.up.installing import default_cache_dir, install_kafka
from streams.up.layout import Layout, choose_http_port
from streams.up.supervised import ServiceSpec, SupervisedChild, answers_http


def broker_service(layout: Layout, broker: KafkaBroker, answering: asyncio.Event) -> ServiceSpec:
    """Describe the broker. `answering` is set at its first answer."""

    async def watch(child: Child) -> str:
        if await broker.wait_until_answering(child):
            answering.set()
            await _forever()
        return "it does not answer"

    return ServiceSpec("broker", layout.log("broker"), STOP_TIMEOUT_S, broker.start, watch)


def gateway_service(
    layout: Layout, command: Sequence[str], bootstrap: str, address: tuple[str, int], without: Collection[str]
) -> ServiceSpec:
    """Describe the gateway at a host and port. It serves again by itself when the broker is back.

    Its environment is the supervisor's `without` the variables of these names. The provider's key is its own, even if
    the worker has the same.
    """
    set_here = {**dotenv_values(".env"), **os.environ}
    without = frozenset(without) - {set_here.get(PROVIDER_KEY)}
    environment = {
        "MODESTREAM_BROKER": f"kafka://{bootstrap}",
        "MODESTREAM_GATEWAY_BIND": ":".join(map(str, address)),
        # The broker of `up` is on loopback, without TLS and SASL.
        "MODESTREAM_KAFKA_SECURITY": "null",
        AUDIT_LOG: set_here.get(AUDIT_LOG) or str(layout.audit_log),
        FILES: set_here.get(FILES) or str(layout.data_dir / "files"),
        IMPORTS: set_here.get(IMPORTS) or str(layout.data_dir / "imports"),
    }

    async def start() -> Child:
        return await Child.start(layout, "gateway", command, environment, without=without)

    async def watch(_: Child) -> str:
        return await _forever()

    return ServiceSpec("gateway", layout.log("gateway"), GATEWAY_STOP_S, start, watch)


async def _forever() -> Never:
    while True:
        await asyncio.Event().wait()


READINESS_INTERVAL_S = 0.2

READINESS_TIMEOUT_S = 30.0

STARTING_NOTICE_INTERVAL_S = 10.0

GATEWAY_COMMAND = (sys.executable, "-m", "streams", "gateway")
"""The gateway in the same Python; its settings are in its environment."""

GATEWAY_STOP_S = 10.0
"""Time limit for the gateway to end; it closes open streams after two seconds."""

AUDIT_LOG = "MODESTREAM_GATEWAY_AUDIT_LOG"
FILES = "MODESTREAM_FILES"
IMPORTS = "MODESTREAM_GATEWAY_IMPORTS"

PROVIDER_KEY = "MODESTREAM_OPENAI_UPSTREAM_KEY_ENV"
"""Names the variable with the key of the provider."""
"""The setting that has a default only under `up`."""

Probe = Callable[[str], Awaitable[bool]]
"""Readiness probe: True if the worker answers requests over the broker at `host:port`. May raise Unavailable."""


@dataclass(frozen=True, slots=True)
class UpOptions:
    data_dir: Path
    port: int
    probe: Probe
    """Repeated until it returns True."""
    http_port: int | None = None
    """The gateway's port; 0: a free one; None: the usual one, or a free one where that is taken."""
    http_host: str = "127.0.0.1"
    """Where the gateway listens: `127.0.0.1`, or `0.0.0.0` for all addresses."""
    fleet: FleetOptions = field(default_factory=FleetOptions)
    gateway: Sequence[str] = GATEWAY_COMMAND
    cache: Path = field(default_factory=default_cache_dir)
    """Kafka's jars, shared by all data directories."""
    print_line: PrintLine = print_line
    worker_secrets: frozenset[str] = frozenset()
    """Names of environment variables that broker and gateway do not get."""


async def run_system(options: UpOptions, layout: Layout, on_fleet: Callable[[Fleet], None]) -> None:
    """Run until cancelled, then stop the children in order. Raises Unavailable or StartRefused if it can't start.

    `on_fleet` is called with the workers before they start.
    """
    installation = await install_kafka(options.cache, layout, options.print_line)
    broker = KafkaBroker(layout, options.port, installation, options.worker_secrets)
    await broker.format()
    system = _System(options, layout, broker)
    on_fleet(system.fleet)
    await system.run()


class _System:
    def __init__(self, options: UpOptions, layout: Layout, broker: KafkaBroker) -> None:
        self._options = options
        self._layout = layout
        self._bootstrap = broker.bootstrap
        self._answering = asyncio.Event()
        environment = {
            "MODESTREAM_BROKER": f"kafka://{broker.bootstrap}",
            # Its own broker is on loopback, without TLS and SASL.
            "MODESTREAM_KAFKA_SECURITY": "null",
        }
        self.fleet = Fleet(options.fleet, layout, environment, options.print_line)
        self._http_port = choose_http_port(options.http_port)
        address = options.http_host, self._http_port
        gateway = gateway_service(layout, options.gateway, broker.bootstrap, address, without=options.worker_secrets)
        self._gateway = SupervisedChild(gateway, options.print_line)
        self._broker = SupervisedChild(broker_service(layout, broker, self._answering), options.print_line)

    async def run(self) -> None:
        try:
            await run_together(
                self._broker.run(),
                self._once_answering(self.fleet.run),
                self._once_answering(self._gateway.run),
                self._announce(),
                rotate_logs(self._layout),
            )
        finally:
            # Open answers need the workers; it ends within seconds.
            await self._gateway.stop()
            # The workers commit their offsets and leave their group while the broker still runs.
            await self.fleet.stop()
            await self._broker.stop()

    async def _once_answering(self, run: Callable[[], Awaitable[None]]) -> None:
        await self._answering.wait()
        await run()

    async def _announce(self) -> None:
        await self._answering.wait()
        noticed_at = time.monotonic()
        while not await self._is_ready():
            if time.monotonic() - noticed_at > STARTING_NOTICE_INTERVAL_S:
                noticed_at = time.monotonic()
                self._options.print_line("the broker answers, the worker is still starting")
            await asyncio.sleep(READINESS_INTERVAL_S)
        self._broker.was_ready = self._gateway.was_ready = True
        self.fleet.note_ready()
        print(f"ready bootstrap={self._bootstrap} http=http://127.0.0.1:{self._http_port}", flush=True)

    async def _is_ready(self) -> bool:
        with suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(READINESS_TIMEOUT_S):
                return (
                    await self._options.probe(self._bootstrap)
                    and await answers_http(self._http_port, "/ready")
                    and await self.fleet.is_ready()
                )
        return False
