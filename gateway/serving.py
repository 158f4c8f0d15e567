"""Serves a deployment over HTTP, and after it the one that replaces it.

Enters: the app over a deployment, with what is known of the deployment. Leaves: the exit code, after SIGTERM or
SIGINT, for a deployment with other scopes, or for deployments that name each other as successors. Guaranteed: it ends
within seconds of a signal, also with open event streams; a deployment that is being replaced gets no request. Callers
wait meanwhile, connected to the address.
"""

import asyncio
import logging
import os
import resource
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import uvicorn
from fastapi import FastAPI

from gateway.http.connections import Connection, Connections
from gateway.http.limits import Limits
from gateway.wire.deployment_record import CircularSuccession, DeploymentRecord, Succession
from gateway.wire.follow import Cluster
from schemas.internal.service import Successor

GRACEFUL_S = 2
"""Seconds that open answers may take after a signal; event streams would hold it up for ever."""

OTHER_DESCRIPTORS = 256
"""Descriptors that connections of callers leave to those to Kafka, to files and libraries."""

KEEP_ALIVE_S = 75
"""Seconds that an idle connection stays open: longer than clients keep theirs, so that none meets a closing one."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Served:
    """An app, its deployment, what is known of it, and how to build the same over its successor, or once more.

    `connections` are those of the process, whatever app they reach.
    """

    app: FastAPI
    cluster: Cluster
    record: DeploymentRecord
    connections: Connections
    at: Callable[[Successor | None], "Served"]


def listen(host: str, port: int) -> socket.socket:
    """Open the listening socket. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=2048)


def granted_descriptors(wanted: int) -> int:
    """Raise the limit of open files of this process to what is wanted, as far as it may; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else soft


def bounded_by_descriptors(limits: Limits) -> Limits:
    """Return limits with as many connections as this process may have descriptors for, of an address most of them."""
    granted = granted_descriptors(limits.connections + OTHER_DESCRIPTORS)
    connections = min(limits.connections, max(granted - OTHER_DESCRIPTORS, granted // 2))
    if connections < limits.connections:
        log.warning("the limit of open files, %d, leaves room for %d connections", granted, connections)
        # No address takes all of what is left.
        per_address = min(limits.connections_per_address, max(1, connections * 3 // 4))
        return limits.model_copy(update={"connections": connections, "connections_per_address": per_address})
    return limits


def server_of(app: FastAPI, connections: Connections | None = None) -> uvicorn.Server:
    """Return the HTTP server of an app; it listens where it is told. `connections` outlive it; None: new ones.

    The address of a request is the one that a trusted proxy names in `X-Forwarded-For`, else that of the connection.
    """
    connections = connections or Connections()
    config = uvicorn.Config(
        app,
        http=partial(Connection, connections=connections),  # type: ignore[arg-type]
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        # By default every sender on loopback is believed.
        proxy_headers=bool(connections.trusted_proxies),
        forwarded_allow_ips=list(connections.trusted_proxies),
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=GRACEFUL_S,
    )
    return uvicorn.Server(config)


async def serve(served: Served, listening: socket.socket) -> int:
    """Serve until a signal, or until the record of the deployment turns out to be another one's."""
    stop = asyncio.Event()
    for order in (signal.SIGTERM, signal.SIGINT):
        # uvicorn raises the signal again at its end: handled here, it ends the process with 0.
        asyncio.get_running_loop().add_signal_handler(order, _stop_by, order, stop)
    succession = Succession(served.cluster)
    while True:
        async with served.record.following():
            if await _serve_until_replaced(served, listening):
                return 0
            if served.record.conflict is not None:
                log.error("the deployment is refused: %s", served.record.conflict)
                return os.EX_CONFIG
            if await _is_stopped_before(stop, served.record):
                return 0
            successor = served.record.successor
        log.warning("the deployment is %s", "as before" if successor is None else f"now {successor.topic_prefix}")
        served = served.at(successor)
        if successor is not None:
            try:
                succession.follow(served.cluster)
            except CircularSuccession as circle:
                log.error("%s", circle)  # noqa: TRY400
                return os.EX_CONFIG


def _stop_by(order: signal.Signals, stop: asyncio.Event) -> None:
    # uvicorn raises the first signal once more.
    if not stop.is_set():
        log.info("stopping by %s", order.name)
    stop.set()


async def _serve_until_replaced(served: Served, listening: socket.socket) -> bool:
    """Serve; return True after a signal, False where the deployment serves no longer."""
    server = server_of(served.app, served.connections)

    async def end_with_the_deployment() -> None:
        await served.record.until_ended()
        server.should_exit = True

    ending = asyncio.create_task(end_with_the_deployment())
    try:
        # A copy: the server closes its own at its end, and connections wait at the other.
        await server.serve(sockets=[listening.dup()])
    finally:
        ending.cancel()
    return not ending.done()


async def _is_stopped_before(stop: asyncio.Event, record: DeploymentRecord) -> bool:
    """Wait for the end of a pause or for a signal; return True if the signal was first."""
    deciding, stopping = asyncio.create_task(record.until_decided()), asyncio.create_task(stop.wait())
    await asyncio.wait({deciding, stopping}, return_when=asyncio.FIRST_COMPLETED)
    deciding.cancel()
    stopping.cancel()
    return stop.is_set()
