"""`python -m streams gateway`: one process that serves HTTP until SIGTERM or SIGINT.

Guaranteed: it starts without a broker; it ends within seconds of a signal, also with open event streams.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable

import uvicorn
from fastapi import FastAPI

from gateway.http.app import create_app
from gateway.http.hosts import AllowedHosts
from gateway.readiness import readiness_of
from gateway.service.boundaries import Boundaries
from gateway.service.feed import Feed
from gateway.service.service import MemoryService
from gateway.settings import GatewaySettings
from gateway.wire.feeds import Feeds
from gateway.wire.follow import Cluster
from gateway.wire.kafka import KafkaWire

GRACEFUL_S = 3
"""Seconds that open answers may take after a signal; event streams would hold it up for ever."""

KEEP_ALIVE_S = 75
"""Seconds that an idle connection stays open: longer than clients keep theirs, so that none meets a closing one."""


def run_gateway(settings: GatewaySettings) -> int:
    """Serve until a signal; return the exit code."""
    logging.basicConfig(level=settings.log_level.upper(), stream=sys.stderr, format=LOG_FORMAT)
    # Its reconnects are logged by the wire.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    try:
        listening = listen(*settings.address)
    except OSError as error:
        sys.stderr.write(f"gateway: {settings.gateway_bind} can't be listened on: {error.strerror}\n")
        return os.EX_UNAVAILABLE
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_serve(build_app(settings), listening))


LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def build_app(settings: GatewaySettings) -> FastAPI:
    """Build the app over Kafka."""
    cluster = Cluster(settings.bootstrap, settings.topic_prefix, settings.kafka_security)
    wire = KafkaWire(*cluster)
    boundaries, feed = Boundaries(), Feed()
    feeds = Feeds(cluster, boundaries, feed)
    service = MemoryService(wire, settings.scope_model, boundaries, feed, feeds.begin_events)
    return create_app(
        service,
        readiness_of(wire),
        scope=settings.scope_model,
        hosts=AllowedHosts(settings.gateway_hosts),
        running=[lambda: wire, feeds.running],
    )


def listen(host: str, port: int) -> socket.socket:
    """Open the listening socket. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


async def _serve(app: FastAPI, listening: socket.socket) -> int:
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACEFUL_S,
    )
    for order in (signal.SIGTERM, signal.SIGINT):
        # uvicorn raises the signal again at its end: handled here, it ends the process with 0.
        asyncio.get_running_loop().add_signal_handler(order, lambda: None)
    await uvicorn.Server(config).serve(sockets=[listening])
    return 0


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's, where it is installed."""
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return None
    return uvloop.new_event_loop
