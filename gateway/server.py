"""`python -m streams gateway`: one process that serves a deployment over HTTP, and after it the one that replaces it.

Guaranteed: it starts without a broker; it ends within seconds of SIGTERM or SIGINT, also with open event streams; a
deployment that is being replaced gets no request: callers wait meanwhile, connected to the address. The exit code is
`EX_CONFIG` for a deployment with other scopes, or for deployments that name each other as successors.
"""

import asyncio
import logging
import os
import resource
import secrets
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import uvicorn
from fastapi import FastAPI

from gateway.backend.dead_letters import KafkaDeadLetters
from gateway.backend.deployment_record import CircularSuccession, DeploymentRecord, Succession
from gateway.backend.followers import Cluster, Feeds
from gateway.backend.kafka import KafkaBackend, MeasuredBackend
from gateway.backend.recorded_turns import KafkaRecordedTurns
from gateway.connection_settings import settings_in_force
from gateway.http.app import AllowedHosts, create_app
from gateway.http.connections import Connection, Connections
from gateway.http.identity import OpenCallers
from gateway.http.limits import Limits
from gateway.http.telemetry import metrics_served
from gateway.keys.callers import KeyCallers
from gateway.mcp.router import McpRouter
from gateway.mem0.routes import BODIES, mem0_routes
from gateway.openai.memory import Outbox
from gateway.openai.provider import Provider
from gateway.openai.routes import OpenAiDoor, OpenAiErrors
from gateway.pages.app import page_routes
from gateway.pages.requests import PAGES
from gateway.pages.sign_in import SIGN_IN, Sessions, SignIn
from gateway.readiness import readiness_of
from gateway.service.access import AUDIT, AuditFile
from gateway.service.boundaries import Boundaries
from gateway.service.dead_letters import DeadLetterList, DeadLetters
from gateway.service.dismissals import Dismissals
from gateway.service.events import Feed
from gateway.service.files import FileStore, PageDrawer
from gateway.service.meters import Meters
from gateway.service.service import MemoryService
from gateway.settings import GatewaySettings, check_key_file, identification_of, without_policy
from schemas.internal.service import Successor
from schemas.state.files import DEFAULT_MAX_FILE_BYTES

log = logging.getLogger(__name__)

PATIENCE_S = 8.0
"""Seconds that requests wait for the first connection to a deployment that has just replaced another one."""

SECRET_BYTES = 32
"""Random bytes of a secret that signs cookies."""


GRACEFUL_S = 2
"""Seconds that open answers may take after a signal; event streams would hold it up for ever."""

OTHER_DESCRIPTORS = 256
"""Descriptors that connections of callers leave to those to Kafka, to files and libraries."""

KEEP_ALIVE_S = 75
"""Seconds that an idle connection stays open: longer than clients keep theirs, so they never use a closing one."""


class KeptFiles(NamedTuple):
    """Where the bytes of files are, how many one has at most, and what draws pages: the command line knows them."""

    store: FileStore | None
    max_bytes: int
    drawer: PageDrawer | None = None


NO_FILES = KeptFiles(None, DEFAULT_MAX_FILE_BYTES)


@dataclass(frozen=True, slots=True)
class Served:
    """An app over a deployment. `at` builds the same over its successor, or once more.

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
    """Raise this process's limit of open files towards the wanted number; return the limit."""
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
    """Return the HTTP server of an app, not yet listening. `connections` outlive it; None: new ones.

    A request's address comes from a trusted proxy's `X-Forwarded-For`, else from the connection.
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

    def stop_by(order: signal.Signals) -> None:
        # uvicorn raises the first signal once more.
        if not stop.is_set():
            log.info("stopping by %s", order.name)
        stop.set()

    for order in (signal.SIGTERM, signal.SIGINT):
        # uvicorn raises the signal again at its end: handled here, it ends the process with 0.
        asyncio.get_running_loop().add_signal_handler(order, stop_by, order)
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


def run_gateway(settings: GatewaySettings, files: KeptFiles = NO_FILES) -> int:
    """Serve until a signal; return the exit code. The caller has configured the logs.

    Raises SystemExit with the reason for a setting, or a file that it names, that can't be used.
    """
    # Destructive calls are logged at any level.
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
        secret = settings.gateway_cookie_secret
        sessions = Sessions(secrets.token_bytes(SECRET_BYTES) if secret is None else secret.get_secret_value().encode())
        outbox = Outbox(connections.meters)
        served = _served(settings, connections, sessions, outbox, files=files)
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
            if (address := settings.metrics_address) is not None:
                stack.enter_context(metrics_served(connections.meters, *address))
        except OSError as error:
            log.error("%s can't be listened on: %s", settings.gateway_metrics_bind, error.strerror)  # noqa: TRY400
            return os.EX_UNAVAILABLE
        runner = stack.enter_context(asyncio.Runner(loop_factory=_loop_factory()))
        return runner.run(serve(served, listening))


def _served(
    settings: GatewaySettings,
    connections: Connections,
    sessions: Sessions,
    outbox: Outbox,
    patience_s: float = 0,
    *,
    files: KeptFiles,
) -> Served:
    """Build the app. Raises OSError or ValueError for an unreadable file."""
    cluster = Cluster.of(settings)
    record = DeploymentRecord(cluster, settings.scope_model)

    def at(successor: Successor | None) -> Served:
        # Callers have waited for the end of the pause: what they ask is answered once the backend is connected.
        following = settings if successor is None else settings.at(successor)
        return _served(following, connections, sessions, outbox, PATIENCE_S, files=files)

    app = build_app(settings, connections.meters, record, sessions, patience_s, outbox=outbox, files=files)
    return Served(app=app, cluster=cluster, record=record, connections=connections, at=at)


def build_app(
    settings: GatewaySettings,
    meters: Meters,
    record: DeploymentRecord,
    sessions: Sessions,
    patience_s: float = 0,
    *,
    outbox: Outbox | None = None,
    files: KeptFiles = NO_FILES,
) -> FastAPI:
    """Build the app over Kafka; it connects once the deployment of `record` serves.

    `sessions` are those of the pages; `patience_s` is how long requests wait for the connection; `outbox` has the turns
    of OpenAI's address that wait for Kafka, whatever deployment they came to. Raises OSError or ValueError for a file
    that can't be read.
    """
    outbox = outbox or Outbox(meters)
    cluster = Cluster.of(settings)
    boundary_fields = settings.scope_model.boundary_fields
    kafka = KafkaBackend(
        *cluster, patience_s=patience_s, boundary_fields=boundary_fields, until_serving=record.until_serving
    )
    identification = identification_of(settings)
    backend = MeasuredBackend(kafka, meters)
    keys = identification.keys
    boundaries, feed = Boundaries(fields=boundary_fields), Feed()
    feeds = Feeds(cluster, boundaries, feed)
    folder = settings.gateway_imports
    letters = DeadLetterList(dismissals=Dismissals(folder and folder / "dismissed-letters"))
    dead_letters = KafkaDeadLetters(cluster, letters, boundary_fields)
    service = MemoryService(
        backend,
        settings.scope_model,
        boundaries=boundaries,
        feed=feed,
        begin_events=feeds.begin_events,
        runs=feeds.runs,
        receipts=feeds.receipts,
        dead_letters=DeadLetters(letters, dead_letters),
        exports=settings.gateway_imports,
        files=files.store,
        max_file_bytes=files.max_bytes,
        drawer=files.drawer,
        recorded_turns=KafkaRecordedTurns(cluster),
    )
    mcp = McpRouter(service, settings.mcp_tools, meters)
    service_answers = readiness_of(backend, boundary_fields)
    sign_in = SignIn(identification.callers or OpenCallers(), keys, sessions)

    async def is_ready() -> bool:
        return (keys is None or keys.is_sound) and await service_answers()

    provider = Provider(
        settings.openai_upstream, settings.openai_upstream_key, connections=settings.gateway_limits.in_flight
    )
    openai = OpenAiDoor(service, provider, outbox, meters)
    app = create_app(
        service,
        is_ready,
        scope=settings.scope_model,
        callers=identification.callers,
        hosts=AllowedHosts(settings.gateway_hosts),
        limits=settings.gateway_limits,
        meters=meters,
        routes=[
            *page_routes(service, settings.scope_model, sign_in, settings_in_force(settings)),
            *mcp.routes,
            *(mem0_routes(service, settings.scope_model).routes if settings.gateway_mem0 else ()),
            *openai.routes,
        ],
        path_callers={PAGES: sign_in, "/": sign_in},
        forms=[SIGN_IN],
        bodies=BODIES if settings.gateway_mem0 else (),
        running=[
            lambda: kafka,
            feeds.running,
            dead_letters.running,
            mcp.running,
            *identification.running,
            *([] if keys is None else [lambda: _reloading(keys)]),
            openai.running,
            service.imports.running,
            service.files.running,
        ],
    )
    app.add_middleware(OpenAiErrors)
    return app


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
