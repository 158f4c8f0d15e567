"""The ASGI application: routes, problem details, and the middleware around them.

`create_app` builds it without any connection; other routes, such as those of MCP, are served with its own.
"""

import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as ConnectionScope

from gateway.http.document import document_app
from gateway.http.identity import NO_PATH_CALLERS, Callers, Identify, OpenCallers, RequestIds
from gateway.http.limits import Limit, Limits, ReadBodies, UnderWay
from gateway.http.problems import Heads, RawPaths, handle_problems, problem
from gateway.http.routes.memories import file_routes, forget_routes, memory_routes, turn_routes
from gateway.http.routes.operations import (
    IsReady,
    health_routes,
    import_routes,
    job_routes,
    operation_routes,
    pipeline_routes,
    tagged,
    user_routes,
)
from gateway.http.routes.streams import answer_routes, event_routes, export_routes
from gateway.http.shapes import Shapes
from gateway.http.telemetry import OWN_SPANS, Measure, Trace
from gateway.service.calls import Refused
from gateway.service.meters import Meters
from gateway.service.service import MemoryService
from schemas.scopes import Scope

log = logging.getLogger(__name__)

LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
"""Hosts that are served by default; any port, as forwarded ports differ."""

DEFAULT_PORTS = {"http": "80", "https": "443"}

SAME_SITES = ("same-origin", "none")
"""Values of `Sec-Fetch-Site` for our own pages, and for a typed address."""


class AllowedHosts:
    """The hosts under which this gateway is reached: `host` for any port, or `host:port`."""

    def __init__(self, hosts: Iterable[str] = ()) -> None:
        self.hosts = frozenset(host.lower() for host in (*LOOPBACK_HOSTS, *hosts))

    def admits(self, host: str) -> bool:
        """True for the value of a header `Host` that is served.

        >>> AllowedHosts(["memory.example"]).admits("memory.example:8443")
        True
        """
        name, _ = _parted(host.lower())
        return host.lower() in self.hosts or name in self.hosts

    def admits_origin(self, origin: str, host: str) -> bool:
        """True for an origin that equals the requested host, or is set."""
        parts = urlsplit(origin.lower())
        if parts.scheme not in DEFAULT_PORTS or not parts.netloc:
            return False
        if parts.netloc == host.lower():
            return True
        name, port = _parted(parts.netloc)
        public = self.hosts - set(LOOPBACK_HOSTS)
        return name in public or f"{name}:{port or DEFAULT_PORTS[parts.scheme]}" in public


class CheckHosts:
    """Refuses foreign hosts, and pages of other origins; passes everything else on.

    A name rebound to loopback arrives with its own name in `Host`: 421. A page of another origin sends `Origin`, or
    `Sec-Fetch-Site: cross-site`: 403. Programs send neither, and pass.
    """

    def __init__(self, app: ASGIApp, allowed: AllowedHosts) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: ConnectionScope, receive: Receive, send: Send) -> None:
        refused = self._refusal(Headers(scope=scope)) if scope["type"] == "http" else None
        if refused is not None:
            await problem(refused, str(scope.get("request_id", "-")))(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _refusal(self, headers: Headers) -> Refused | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._allowed.admits(hosts[0]):
            log.warning("refused host %.100r: is it one of GATEWAY_HOSTS?", ",".join(hosts))
            return Refused("misdirected", "this host is not served here; the operator sets the names of this gateway")
        origins = headers.getlist("origin")
        if not all(self._allowed.admits_origin(origin, hosts[0]) for origin in origins):
            return Refused("not_allowed", "pages of this origin may not call this gateway")
        if not origins and headers.get("sec-fetch-site", "none") not in SAME_SITES:
            return Refused("not_allowed", "pages of other sites may not call this gateway")
        return None


def _parted(host: str) -> tuple[str, str]:
    """Split a host from its port; an IPv6 address has colons within brackets."""
    name, colon, port = host.rpartition(":")
    return (name, port) if colon and not host.endswith("]") else (host, "")


shapes_with = cache(Shapes)
"""The shapes of a scope model, made once: a third of the time of `create_app`."""

Running = Callable[[], AbstractAsyncContextManager[Any]]
"""Something that runs as long as the app."""


def create_app(
    service: MemoryService,
    is_ready: IsReady,
    *,
    scope: type[Scope] = Scope,
    callers: Callers | None = None,
    hosts: AllowedHosts | None = None,
    limits: Limits | None = None,
    meters: Meters | None = None,
    running: Sequence[Running] = (),
    routes: Sequence[BaseRoute] = (),
    bodies: Sequence[type[BaseModel]] = (),
    path_callers: Mapping[str, Callers] = NO_PATH_CALLERS,
    forms: Collection[str] = (),
    has_api: bool = True,
) -> FastAPI:
    """Build the application.

    `running` is entered at its start. `routes` are further ones, `bodies` their models, `path_callers` callers by path
    prefixes that identify them by other means, `forms` the paths of forms without a caller. `has_api`: False leaves the
    routes below `/v1` out, which take most of the time of a start.
    """
    shapes, limits, meters = shapes_with(scope), limits or Limits(), meters or Meters()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for enter in running:
                await stack.enter_async_context(enter())
            yield

    app = FastAPI(
        title="modestream",
        summary="Conversation memory: remember turns, search, list, assemble contexts.",
        version="1",
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        telemetry=OWN_SPANS,
        middleware=[
            Middleware(RequestIds),
            Middleware(RawPaths),
            Middleware(Heads),
            Middleware(Trace),
            Middleware(Measure, meters=meters),
            Middleware(CheckHosts, allowed=hosts or AllowedHosts()),
            Middleware(Identify, callers=callers or OpenCallers(), path_callers=path_callers),
            Middleware(Limit, limits=limits, meters=meters),
            Middleware(ReadBodies, limits=limits, meters=meters, forms=forms),
            Middleware(UnderWay, limits=limits, meters=meters),
        ],
    )
    handle_problems(app)
    app.include_router(health_routes(is_ready))
    for router in api_routers(service, shapes) if has_api else ():
        app.include_router(router)
    # First: each request tries the routes in order, and ours are many.
    app.router.routes[:0] = routes
    document_app(app, shapes, bodies)
    return app


def api_routers(service: MemoryService, shapes: Shapes) -> list[APIRouter]:
    return [
        turn_routes(service, shapes),
        operation_routes(service, shapes, tagged("reads")),
        memory_routes(service, shapes),
        forget_routes(service, shapes),
        operation_routes(service, shapes, tagged("memories", "modes", "layers", "runs", "jobs")),
        job_routes(service),
        import_routes(service, shapes),
        file_routes(service, shapes),
        user_routes(service),
        pipeline_routes(service),
        operation_routes(service, shapes, tagged("pipelines")),
        answer_routes(service, shapes),
        event_routes(service),
        export_routes(service, shapes),
    ]
