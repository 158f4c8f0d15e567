"""ASGI middleware: a span for every request, its count and its duration; and the port where Prometheus reads these.

The parent of a span is the caller's `traceparent`; an invalid one counts as absent. Without an SDK in the process no
span is made, and the caller's trace is carried on. Guaranteed: no path, query, header or body gets into a span, no path
and no name of a user into a label.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from fastapi.telemetry import TelemetryConfig
from opentelemetry import context, trace
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import start_http_server
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.problems import is_stream
from gateway.service.meters import Meters

SCOPE = "modestream.gateway"
"""The instrumentation scope of the spans."""

OWN_SPANS: TelemetryConfig = {"tracing": False, "operation_spans": False, "logs": False}
"""The framework's own spans have paths and queries, and its logs the messages of exceptions. Its metrics stay: they are
by route template, and absent without a meter provider."""

PROBES = frozenset({"/live", "/ready"})
"""Paths without spans: they are polled every few seconds."""

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods named in spans; a caller can send any word."""

MAX_HEADER_CHARS = 512
"""A longer header is ignored: the propagator would log each one."""

_propagator = TraceContextTextMapPropagator()


class Trace:
    """Makes a request's span current; inside of middleware that replaces the scope: routing notes its route there."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._tracer = trace.get_tracer(SCOPE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        carried = {name: headers.get(name, "") for name in _propagator.fields}
        carried = {name: value for name, value in carried.items() if 0 < len(value) <= MAX_HEADER_CHARS}
        method = scope["method"] if scope["method"] in METHODS else "HTTP"
        parent = _propagator.extract(carried, context.Context())
        span = self._tracer.start_span(method, parent, SpanKind.SERVER, {"http.request.method": method})

        async def send_noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                span.set_attribute("http.response.status_code", status)
                if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    span.set_attribute("error.type", str(status))
                    span.set_status(StatusCode.ERROR)
            await send(message)

        attached = context.attach(trace.set_span_in_context(span))
        try:
            await self._app(scope, receive, send_noted)
        except Exception as problem:
            # The type alone: the message may have a text of the user.
            span.set_attribute("error.type", type(problem).__qualname__)
            span.set_status(StatusCode.ERROR)
            raise
        finally:
            context.detach(attached)
            # By the route: the path itself has the user's id.
            if (template := template_of(scope)) is not None:
                span.set_attribute("http.route", template)
                span.update_name(f"{method} {template}")
            span.end()


def template_of(scope: Scope) -> str | None:
    """Return the template of the route that has answered; None without one."""
    route, endpoint = scope.get("route"), scope.get("endpoint")
    if route is None and endpoint is not None:
        # The router notes its own kind of routes only, and the endpoint of others.
        routes = scope["app"].routes
        route = next((other for other in routes if getattr(other, "endpoint", None) is endpoint), None)
    template: str | None = getattr(route, "path_format", None)
    return template


NO_ROUTE = "none"
"""Stands for the route of requests refused before routing."""

GONE = "gone"
"""The status of a request whose caller hung up before it was answered."""


class Measure:
    """Counts requests; inside of middleware that replaces the scope, since routing notes its route there."""

    def __init__(self, app: ASGIApp, meters: Meters) -> None:
        self._app = app
        self._meters = meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), GONE

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except Exception:
            # Answered with it outside of this.
            status = "502"
            raise
        finally:
            route = template_of(scope) or NO_ROUTE
            method = scope["method"] if scope["method"] in METHODS else "HTTP"
            self._meters.requests.labels(method, route, status).inc()
            if not is_stream(scope["path"]):
                self._meters.request_seconds.labels(route).observe(time.perf_counter() - began)


@contextmanager
def metrics_served(meters: Meters, host: str, port: int) -> Iterator[int]:
    """Serve `/metrics` while the block runs; yield the port. Raises OSError."""
    server, thread = start_http_server(port, host, meters.registry)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
