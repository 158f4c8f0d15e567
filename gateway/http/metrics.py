"""ASGI middleware: count and time every request. And where Prometheus reads that: a port of its own, in a thread.

Guaranteed: no path and no name of a user gets into a label; nothing is served there but `Meters`.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import start_http_server
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.paths import is_stream
from gateway.http.tracing import METHODS, template_of
from gateway.service.meters import Meters

NO_ROUTE = "none"
"""The route of requests that are refused before there is one."""

GONE = "gone"
"""The status of a request whose caller hung up before it was answered."""


class Measure:
    """Counts requests; inside of what replaces the scope, since routing notes its route there."""

    def __init__(self, app: ASGIApp, meters: Meters) -> None:
        self._app = app
        self._meters = meters

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and count it."""
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
            # Answered so outside of this.
            status = "502"
            raise
        finally:
            self._note(scope, status, time.perf_counter() - began)

    def _note(self, scope: Scope, status: str, seconds: float) -> None:
        route = template_of(scope) or NO_ROUTE
        method = scope["method"] if scope["method"] in METHODS else "HTTP"
        self._meters.requests.labels(method, route, status).inc()
        if not is_stream(scope["path"]):
            self._meters.request_seconds.labels(route).observe(seconds)


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
