"""ASGI middleware: bounds on what one key, and all of them, may have under way.

A keyless gateway on loopback has no rates, only the bounds that protect the process.
"""

import math
from collections import Counter

from pydantic import BaseModel, Field
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.http.problems import problem
from gateway.service.buckets import Buckets
from gateway.service.calls import Caller
from gateway.service.failures import RETRY_AFTER_S, Refused

READING_POSTS = ("/memories/search", "/contexts", "/mem0/search", "/mem0/v2/memories", "/mem0/v3/memories")
"""Ends of paths that are posted to and only read."""

STREAMS = ("/events", "/export")
"""Ends of paths whose answers stay open."""

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

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self._app = app
        self._limits = limits
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
        is_stream = scope["method"] == "GET" and scope["path"].endswith(STREAMS)
        refused = self._refusal(caller, scope, is_stream=is_stream)
        if refused is not None:
            await problem(refused, scope["request_id"])(scope, receive, send)
            return
        self._count(caller, 1, is_stream=is_stream)
        try:
            await self._app(scope, receive, send)
        finally:
            self._count(caller, -1, is_stream=is_stream)

    def _refusal(self, caller: Caller, scope: Scope, *, is_stream: bool) -> Refused | None:
        if (
            is_stream and self._streams.total() >= self._limits.open_streams
        ) or self._in_flight >= self._limits.in_flight:
            return Refused("unavailable", "this gateway has too much under way", retry_after_s=RETRY_AFTER_S)
        if caller.principal is None:
            return None
        if is_stream and self._streams[caller.name] >= self._limits.streams_per_key:
            return Refused("too_many_requests", "this key has too many open streams", retry_after_s=RETRY_AFTER_S)
        wait_s = (self._reads if _only_reads(scope) else self._writes).take(caller.name)
        if wait_s > 0:
            return Refused("too_many_requests", "this key asks too often", retry_after_s=math.ceil(wait_s))
        return None

    def _count(self, caller: Caller, by: int, *, is_stream: bool) -> None:
        if is_stream:
            self._streams[caller.name] += by
            if not self._streams[caller.name]:
                del self._streams[caller.name]
        else:
            self._in_flight += by


def _only_reads(scope: Scope) -> bool:
    return scope["method"] in ("GET", "HEAD", "OPTIONS") or scope["path"].rstrip("/").endswith(READING_POSTS)
