"""`python -m streams gateway`: one process that serves HTTP until SIGTERM or SIGINT.

Guaranteed: it starts without a broker. How it serves, and where it sends what it gets: `gateway.serving`.
"""

import asyncio
import logging
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager, nullcontext

from fastapi import FastAPI

from gateway.http.app import create_app
from gateway.http.connections import Connections
from gateway.http.hosts import AllowedHosts
from gateway.http.identity import OpenCallers
from gateway.http.metrics import metrics_served
from gateway.identification import check_key_file, identification_of, without_policy
from gateway.keys.key_callers import KeyCallers
from gateway.mcp.door import McpDoor
from gateway.mem0.routes import BODIES, mem0_routes
from gateway.pages.app import page_routes
from gateway.pages.requests import PAGES
from gateway.pages.sign_in import SIGN_IN, Sessions, SignIn
from gateway.readiness import readiness_of
from gateway.service.audit import AUDIT, AuditFile
from gateway.service.boundaries import Boundaries
from gateway.service.dead_letter_list import DeadLetterList
from gateway.service.dead_letters import DeadLetters
from gateway.service.feed import Feed
from gateway.service.meters import Meters
from gateway.service.service import MemoryService
from gateway.serving import Served, bounded_by_descriptors, listen, serve
from gateway.settings import GatewaySettings
from gateway.wire.dead_letters import KafkaDeadLetters
from gateway.wire.deployment_record import DeploymentRecord
from gateway.wire.feeds import Feeds
from gateway.wire.follow import Cluster
from gateway.wire.kafka import KafkaWire
from gateway.wire.measured import MeasuredWire
from schemas.internal.service import Successor

log = logging.getLogger(__name__)


def run_gateway(settings: GatewaySettings) -> int:
    """Serve until a signal; return the exit code. The caller has configured the logs.

    Raises SystemExit with the reason for a setting, or a file that it names, that can't be used.
    """
    # Its reconnects are logged by the wire.
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    # It logs every request as the end of a session.
    logging.getLogger("mcp").setLevel(logging.WARNING)
    # Destructive calls are told of at any level.
    logging.getLogger(AUDIT).setLevel(logging.INFO)
    check_key_file(settings)
    if settings.gateway_audit_log is not None:
        try:
            logging.getLogger(AUDIT).addHandler(AuditFile(settings.gateway_audit_log))
        except OSError as error:
            sys.exit(f"gateway: GATEWAY_AUDIT_LOG={settings.gateway_audit_log}: {error.strerror}")
    if settings.gateway_keys is None and settings.gateway_oidc is None:
        log.warning(
            "no keys: every program on this machine that can open %s may read and write all memories, and edit the"
            " pipelines; set GATEWAY_KEYS to change that",
            settings.gateway_bind,
        )
    connections = Connections(
        bounded_by_descriptors(settings.gateway_limits), Meters(), settings.gateway_trusted_proxies
    )
    try:
        served = _served(settings, connections, Sessions(_cookie_secret(settings)))
    except (OSError, ValueError) as error:
        sys.exit(f"gateway: a file of keys or grants can't be read: {error}")
    for warning in without_policy(settings):
        log.warning(warning)
    try:
        listening = listen(*settings.address)
    except OSError as error:
        log.error("%s can't be listened on: %s", settings.gateway_bind, error.strerror)  # noqa: TRY400
        return os.EX_UNAVAILABLE
    with ExitStack() as stack:
        try:
            stack.enter_context(_metrics(settings, connections.meters))
        except OSError as error:
            log.error("%s can't be listened on: %s", settings.gateway_metrics_bind, error.strerror)  # noqa: TRY400
            return os.EX_UNAVAILABLE
        runner = stack.enter_context(asyncio.Runner(loop_factory=_loop_factory()))
        return runner.run(serve(served, listening))


def _served(settings: GatewaySettings, connections: Connections, sessions: Sessions, patience_s: float = 0) -> Served:
    """Build what is served. Raises OSError or ValueError for a file that can't be read."""
    cluster = Cluster.of(settings)
    record = DeploymentRecord(cluster, settings.scope_model)

    def at(successor: Successor | None) -> Served:
        # Callers have waited for the end of the pause: what they ask is answered once the wire is connected.
        return _served(settings if successor is None else settings.at(successor), connections, sessions, PATIENCE_S)

    app = build_app(settings, connections.meters, record, sessions, patience_s)
    return Served(app=app, cluster=cluster, record=record, connections=connections, at=at)


def _cookie_secret(settings: GatewaySettings) -> bytes:
    given = settings.gateway_cookie_secret
    return given.get_secret_value().encode() if given is not None else secrets.token_bytes(SECRET_BYTES)


def _metrics(settings: GatewaySettings, meters: Meters) -> AbstractContextManager[object]:
    address = settings.metrics_address
    return nullcontext() if address is None else metrics_served(meters, *address)


PATIENCE_S = 8.0
"""Seconds that requests wait for the first connection to a deployment that has just replaced another one."""

SECRET_BYTES = 32
"""Random bytes of a secret that signs cookies."""


def build_app(
    settings: GatewaySettings, meters: Meters, record: DeploymentRecord, sessions: Sessions, patience_s: float = 0
) -> FastAPI:
    """Build the app over Kafka; it connects once the deployment of `record` serves.

    `sessions` are those of the pages; `patience_s` is how long requests wait for the connection. Raises OSError or
    ValueError for a file that can't be read.
    """
    cluster = Cluster.of(settings)
    boundary_fields = settings.scope_model.boundary_fields
    kafka = KafkaWire(
        *cluster, patience_s=patience_s, boundary_fields=boundary_fields, until_serving=record.until_serving
    )
    known = identification_of(settings)
    wire = MeasuredWire(kafka, meters)
    keys = known.keys
    boundaries, feed = Boundaries(fields=boundary_fields), Feed()
    feeds = Feeds(cluster, boundaries, feed)
    letters = DeadLetterList()
    dead_letters = KafkaDeadLetters(cluster, letters, boundary_fields)
    service = MemoryService(
        wire, settings.scope_model, boundaries, feed, feeds.begin_events, feeds.runs, DeadLetters(letters, dead_letters)
    )
    mcp = McpDoor(service, settings.gateway_mcp_tools, meters)
    answers = readiness_of(wire, boundary_fields)
    sign_in = SignIn(known.callers or OpenCallers(), keys, sessions)

    async def is_ready() -> bool:
        return (keys is None or keys.is_sound) and await answers()

    return create_app(
        service,
        is_ready,
        scope=settings.scope_model,
        callers=known.callers,
        hosts=AllowedHosts(settings.gateway_hosts),
        limits=settings.gateway_limits,
        meters=meters,
        routes=[
            *page_routes(service, settings.scope_model, sign_in),
            *mcp.routes,
            *(mem0_routes(service, settings.scope_model).routes if settings.gateway_mem0 else ()),
        ],
        doors={PAGES: sign_in, "/": sign_in},
        forms=[SIGN_IN],
        bodies=BODIES if settings.gateway_mem0 else (),
        running=[
            lambda: kafka,
            feeds.running,
            dead_letters.running,
            mcp.running,
            *known.running,
            *([] if keys is None else [lambda: _reloading(keys)]),
        ],
    )


@asynccontextmanager
async def _reloading(keys: KeyCallers) -> AsyncIterator[None]:
    """Read the keys again on SIGHUP."""
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, keys.reload)
    yield
    loop.remove_signal_handler(signal.SIGHUP)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Return uvloop's, where it is installed."""
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return None
    return uvloop.new_event_loop
