"""`python -m streams mcp`: the Model Context Protocol on standard input and output, for one user.

Started by the program that asks, such as an editor. Guaranteed: nothing but messages of the protocol is written to
standard output; it starts without a broker, and ends when its input does.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import Any

from mcp.server.stdio import stdio_server

from gateway.backend.deployment_record import CircularSuccession, DeploymentRecord, Succession
from gateway.backend.followers import Cluster
from gateway.backend.kafka import KafkaBackend, ServingBackend
from gateway.connection_settings import ConnectionSettings, StdioSettings
from gateway.mcp.server import build_server
from gateway.mcp.tools import ToolRequest
from gateway.service.calls import Call, Caller
from gateway.service.service import MemoryService

LOOK_S = 4.0
"""Seconds in which the record of the deployment is read before messages are."""

PATIENCE_S = 8.0
"""Seconds that a call waits for the connection: a program may ask at once after it has started this one."""


def run_stdio(settings: StdioSettings) -> int:
    """Serve until the input ends; return the exit code. The caller has configured the logs."""
    for order in (signal.SIGINT, signal.SIGTERM):
        # The thread that reads the input can't be woken; there is nothing to put in order.
        signal.signal(order, signal.SIG_DFL)
    return asyncio.run(_serve(settings))


async def _serve(settings: StdioSettings) -> int:
    settings, conflict = await _serving_deployment(settings)
    if conflict is not None:
        sys.stderr.write(f"mcp: {conflict}\n")
        return os.EX_CONFIG
    backend = ServingBackend(settings, backend_to)
    caller = Caller(name="stdio", principal=settings.principal, own_user=settings.user)

    def request_of(_: Any) -> ToolRequest:
        return ToolRequest(Call.within(caller, settings.user), settings.project)

    service = MemoryService(backend, settings.scope_model)
    server = build_server(service, request_of, settings.mcp_tools)
    async with backend, stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
    return 0


def backend_to(settings: ConnectionSettings) -> tuple[DeploymentRecord, KafkaBackend]:
    """Return the record of a deployment, and the backend to it, which connects once the record says that it serves."""
    cluster, scope = Cluster.of(settings), settings.scope_model
    record = DeploymentRecord(cluster, scope)
    backend = KafkaBackend(
        *cluster, patience_s=PATIENCE_S, boundary_fields=scope.boundary_fields, until_serving=record.until_serving
    )
    return record, backend


async def _serving_deployment(settings: StdioSettings) -> tuple[StdioSettings, str | None]:
    """Return the settings of the deployment that serves, and why this process can't serve it, if so.

    Without a broker the settings are returned unchanged: calls wait for the backend, and it for the record.
    """
    succession = Succession(Cluster.of(settings))
    with suppress(TimeoutError):
        async with asyncio.timeout(LOOK_S):
            while True:
                record = DeploymentRecord(Cluster.of(settings), settings.scope_model)
                async with record.following():
                    await record.until_known()
                    await record.until_decided()
                if record.successor is None:
                    return settings, record.conflict
                settings = settings.at(record.successor)
                try:
                    succession.follow(Cluster.of(settings))
                except CircularSuccession as circle:
                    return settings, str(circle)
    return settings, None
