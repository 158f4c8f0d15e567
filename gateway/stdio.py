"""`python -m streams mcp`: the Model Context Protocol on standard input and output, for one user.

Started by the program that asks, such as an editor. Guaranteed: nothing but messages of the protocol is written to
standard output; it starts without a broker, and ends when its input does.
"""

import asyncio
import logging
import signal
import sys
from typing import Any

from mcp.server.stdio import stdio_server

from gateway.connection_settings import StdioSettings
from gateway.mcp.place import Place
from gateway.mcp.server import build_server
from gateway.service.calls import Call, Caller
from gateway.service.service import MemoryService
from gateway.wire.kafka import KafkaWire

PATIENCE_S = 8.0
"""Seconds that a call waits for the connection: a program may ask at once after it has started this one."""


def run_stdio(settings: StdioSettings) -> int:
    """Serve until the input ends; return the exit code."""
    logging.basicConfig(level=settings.log_level.upper(), stream=sys.stderr)
    # Its reconnects are logged by the wire.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    for order in (signal.SIGINT, signal.SIGTERM):
        # The thread that reads the input can't be woken; there is nothing to put in order.
        signal.signal(order, signal.SIG_DFL)
    asyncio.run(_serve(settings))
    return 0


async def _serve(settings: StdioSettings) -> None:
    wire = KafkaWire(
        settings.bootstrap,
        settings.topic_prefix,
        settings.kafka_security,
        patience_s=PATIENCE_S,
        boundary_fields=settings.scope_model.boundary_fields,
    )
    caller = Caller(name="stdio", principal=settings.principal, own_user=settings.user)

    def place_of(_: Any) -> Place:
        return Place(Call.within(caller, settings.user), settings.project)

    service = MemoryService(wire, settings.scope_model)
    server = build_server(service, place_of, settings.gateway_mcp_tools)
    async with wire, stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
