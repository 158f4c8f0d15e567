"""ASGI middleware: bounds on what one key, and all of them, may have under way.

A keyless gateway on loopback has no rates, only the bounds that protect the process.
"""

import math
from collections import Counter
from functools import partial

from pydantic import BaseModel, Field
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.http.paths import is_stream
from gateway.http.problems import problem
from gateway.service.buckets import Buckets
from gateway.service.calls import Caller
from gateway.service.failures import RETRY_AFTER_S, RefusalCode, Refused
from gateway.service.meters import Meters

READING_POSTS = ("/memories/search", "/contexts", "/mem0/search", "/mem0/v2/memories", "/mem0/v3/memories")
"""Ends of paths that are posted to and only read."""

MCP_PATH = "/mcp"
"""Every message of the protocol counts as a read; a tool that writes counts by `COUNT_WRITE` too."""

COUNT_WRITE = "modestream.count_write"
"""The key, in an ASGI scope, of a function that counts a write of the request's key. It raises Refused."""

BURST_S = 2.0
"""Seconds of a rate that may come at once."""


class Limits(BaseModel, frozen=True, extra="forbid"):
    """The setting `GATEWAY_LIMITS`. Rates are of one key; `in_flight` and `open_streams` of the whole gateway."""

    reads_per_second: float = Field(default=50, gt=0)
    writes_per_second: float = Field(default=20, gt=0)
    streams_per_key: int = Field(default=4, ge=1)
    open_streams: int = Field(default=256, ge=1)
    in_flight: int = Field(default=256, ge=1)
    failed_logins_per_minute: float = Field(default=5, gt=0)


class Limit:
    """Answers 429 beyond a key's rate and 503 beyond what the process bears."""

    def __init__(self, app: ASGIApp, limits: Limits, meters: Meters) -> None:
        self._app = app
        self._limits = limits
        self._meters = meters
        self._reads = Buckets(limits.reads_per_second, limits.reads_per_second * BURST_S)
        self._writes = Buckets(limits.writes_per_second, limits.writes_per_second * BURST_S)
        self._streams: Counter[str] = Counter()
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count a request while it is under way."""
        caller = scope.get("caller")
        if scope["type"] != "http" or not isinstance(caller, Caller):
            await self._app(scope, receive, send)
            return
        streams = scope["method"] == "GET" and is_stream(scope["path"])
        try:
            self._admit(caller, scope, streams=streams)
        except Refused as refused:
            await problem(refused, scope["request_id"])(scope, receive, send)
            return
        scope[COUNT_WRITE] = partial(self._take, self._writes, "writes", caller)
        self._count(caller, 1, streams=streams)
        try:
            await self._app(scope, receive, send)
        finally:
            self._count(caller, -1, streams=streams)

    def _admit(self, caller: Caller, scope: Scope, *, streams: bool) -> None:
        """Raise Refused for a request beyond a bound or a rate."""
        if streams and self._streams.total() >= self._limits.open_streams:
            raise self._refused("open_streams", "unavailable", "this gateway has too much under way")
        if self._in_flight >= self._limits.in_flight:
            raise self._refused("in_flight", "unavailable", "this gateway has too much under way")
        if caller.principal is None:
            return
        if streams and self._streams[caller.name] >= self._limits.streams_per_key:
            raise self._refused("streams_per_key", "too_many_requests", "this key has too many open streams")
        if _only_reads(scope):
            self._take(self._reads, "reads", caller)
        else:
            self._take(self._writes, "writes", caller)

    def _take(self, buckets: Buckets, limit: str, caller: Caller) -> None:
        """Count a read or a write of a key. Raises Refused for one too many."""
        if caller.principal is not None and (wait_s := buckets.take(caller.name)) > 0:
            raise self._refused(limit, "too_many_requests", "this key asks too often", math.ceil(wait_s))

    def _refused(self, limit: str, code: RefusalCode, message: str, retry_after_s: int = RETRY_AFTER_S) -> Refused:
        self._meters.limited.labels(limit).inc()
        return Refused(code, message, retry_after_s=retry_after_s)

    def _count(self, caller: Caller, by: int, *, streams: bool) -> None:
        if streams:
            self._meters.open_streams.inc(by)
            self._streams[caller.name] += by
            if not self._streams[caller.name]:
                del self._streams[caller.name]
        else:
            self._meters.in_flight.inc(by)
            self._in_flight += by


def _only_reads(scope: Scope) -> bool:
    path = str(scope["path"]).rstrip("/")
    if scope["method"] in ("GET", "HEAD", "OPTIONS") or path.endswith(READING_POSTS):
        return True
    return path == MCP_PATH or path.startswith(f"{MCP_PATH}/")
