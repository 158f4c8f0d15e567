"""ASGI middleware: rates of a key, and limits of one sender and of all senders on work in flight, bodies included.

A sender is a key, or, without one, an address. A keyless gateway on loopback has no rates, only the limits that protect
the process. Guaranteed: a body has 16 MiB at most, 4 KiB from an unknown sender and in a form of sign-in; it comes
within its time; all bodies together take bounded memory, of which no sender has more than a quarter; a large one has a
bounded number of JSON values. A caller that hangs up meanwhile gets no answer, and is not an error.
"""

import asyncio
import math
import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from functools import partial

from pydantic import BaseModel, Field
from starlette.datastructures import FormData, Headers
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.identity import OPEN_PATHS
from gateway.http.problems import SENTENCES_OF_HTTP, is_stream, problem
from gateway.service.calls import RETRY_AFTER_S, Buckets, Caller, RefusalCode, Refused
from gateway.service.meters import Meters
from schemas.messages.decoding import MAX_VALUES, count_values

READING_POSTS = ("/memories/search", "/contexts", "/mem0/search", "/mem0/v2/memories", "/mem0/v3/memories")
"""Suffixes of paths that are posted to and only read."""

OF_MODELS = re.compile(r"/openai/.*|/v1/users/[^/]+/answers")
"""Paths whose requests wait for a language model, for minutes: they have as many slots as all others together. Their
ends alone would not do: callers choose names of users."""

MCP_PATH = "/mcp"
"""Every message of the protocol counts as a read; a tool that writes counts by `COUNT_WRITE` too."""

COUNT_WRITE = "modestream.count_write"
"""The key, in an ASGI scope, of a function that counts a write of the request's key. It raises Refused."""

CHARGE_WRITES = "modestream.charge_writes"
"""The key of a function that counts further writes of a request that is admitted: the next request waits for them."""

WAIT_FOR_MODEL = "modestream.wait_for_model"
"""The key of a function that moves a request to the slots for language models, if its path does not show that it waits
for one. It raises Refused."""

BODY_LIMITS = "modestream.body_limits"
"""The key of the limits of a body that is read by its route."""

BURST_S = 2.0


class Limits(BaseModel, frozen=True, extra="forbid"):
    """The setting `GATEWAY_LIMITS`. Values apply to the whole gateway unless named by key, address or connection."""

    reads_per_second: float = Field(default=50, gt=0)
    writes_per_second: float = Field(default=20, gt=0)
    """Of each key; a list of turns counts as many writes as it has turns."""
    streams_per_key: int = Field(default=4, ge=1)
    open_streams: int = Field(default=256, ge=1)
    in_flight: int = Field(default=256, ge=1)
    """Requests with a complete body and no answer yet; without streams."""
    in_flight_per_key: int = Field(default=64, ge=1)
    in_flight_per_address: int = Field(default=128, ge=1)
    """Of requests without a key."""
    failed_logins_per_minute: float = Field(default=5, gt=0)
    connections: int = Field(default=2048, ge=1)
    connections_per_address: int = Field(default=1024, ge=1)
    header_bytes: int = Field(default=64 * 1024, ge=1024)
    """Of a request line and its header fields together."""
    header_fields: int = Field(default=100, ge=1)
    header_seconds: float = Field(default=10, gt=0)
    """Time for a request line and its header fields, and for the rest of a refused body."""
    body_seconds: float = Field(default=30, gt=0)
    """Time for a body; longer for a large one that comes at `body_bytes_per_second`."""
    body_bytes_per_second: float = Field(default=64 * 1024, gt=0)
    body_bytes: int = Field(default=128 * 1024 * 1024, ge=16 * 1024 * 1024)
    """Bytes of all bodies together, until they are answered; a quarter of it for one sender, at least 16 MiB."""


class Shares:
    """An amount shared by senders: limited in total and for each sender."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._lent: Counter[str] = Counter()
        self._sum = 0

    def take(self, sender: str, amount: int, most: int) -> str | None:
        """Lend an amount; return None, or the limit, `all` or `sender`, that it would break: then nothing is lent."""
        if self._sum + amount > self.total:
            return "all"
        if self._lent[sender] + amount > most:
            return "sender"
        self._lent[sender] += amount
        self._sum += amount
        return None

    def give_back(self, sender: str, amount: int) -> None:
        self._sum -= amount
        self._lent[sender] -= amount
        if self._lent[sender] <= 0:
            del self._lent[sender]


def sender_of(scope: Scope) -> tuple[str, bool]:
    """Return the sender of a request, and whether it is a key, or an address, which many may share."""
    caller = scope.get("caller")
    if isinstance(caller, Caller) and caller.principal is not None:
        return caller.name, True
    return f"address {(scope.get('client') or ('',))[0]}", False


class Limit:
    """Answers 429 above a key's rate, and 503 for one stream too many."""

    def __init__(self, app: ASGIApp, limits: Limits, meters: Meters) -> None:
        self._app = app
        self._limits = limits
        self._meters = meters
        self._reads = Buckets(limits.reads_per_second, limits.reads_per_second * BURST_S)
        self._writes = Buckets(limits.writes_per_second, limits.writes_per_second * BURST_S)
        self._streams: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = scope.get("caller")
        if scope["type"] != "http" or not isinstance(caller, Caller):
            await self._app(scope, receive, send)
            return
        streams = is_streaming(scope)
        try:
            self._admit(caller, scope, streams=streams)
        except Refused as refused:
            await problem(refused, scope["request_id"])(scope, receive, send)
            return
        scope[COUNT_WRITE] = partial(self._take, self._writes, "writes", caller)

        def charge_writes(count: int) -> None:
            if caller.principal is not None:
                self._writes.charge(caller.name, count)

        scope[CHARGE_WRITES] = charge_writes
        if not streams:
            await self._app(scope, receive, send)
            return
        self._count_stream(caller, 1)
        try:
            await self._app(scope, receive, send)
        finally:
            self._count_stream(caller, -1)

    def _admit(self, caller: Caller, scope: Scope, *, streams: bool) -> None:
        """Raise Refused for a request above a limit or a rate."""
        if streams and self._streams.total() >= self._limits.open_streams:
            raise busy(self._meters, "open_streams")
        if caller.principal is None:
            return
        if streams and self._streams[caller.name] >= self._limits.streams_per_key:
            raise self._refused("streams_per_key", "too_many_requests", "this key has too many open streams")
        path = str(scope["path"]).rstrip("/")
        is_read = scope["method"] in ("GET", "HEAD", "OPTIONS") or path.endswith(READING_POSTS)
        if is_read or path == MCP_PATH or path.startswith(f"{MCP_PATH}/"):
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

    def _count_stream(self, caller: Caller, by: int) -> None:
        self._meters.open_streams.inc(by)
        self._streams[caller.name] += by
        if not self._streams[caller.name]:
            del self._streams[caller.name]


class UnderWay:
    """Answers 429 above a sender's limit of requests in flight, and 503 above the total limit.

    The innermost middleware. A request counts once its body is complete: an unfinished one takes no other's slot.
    """

    def __init__(self, app: ASGIApp, limits: Limits, meters: Meters) -> None:
        self._app = app
        self._limits = limits
        self._meters = meters
        self._requests = Shares(limits.in_flight)
        self._of_provider = Shares(limits.in_flight)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS or is_streaming(scope):
            await self._app(scope, receive, send)
            return
        sender, is_key = sender_of(scope)
        most = self._limits.in_flight_per_key if is_key else self._limits.in_flight_per_address
        places = self._of_provider if OF_MODELS.fullmatch(scope["path"]) else self._requests
        sender_bound = "in_flight_per_key" if is_key else "in_flight_per_address"
        bound = places.take(sender, 1, most)
        if bound is not None:
            refused = busy(self._meters, "in_flight" if bound == "all" else sender_bound)
            await problem(refused, scope["request_id"])(scope, receive, send)
            return

        def wait_for_model() -> None:
            nonlocal places
            if places is self._of_provider:
                return
            if (bound := self._of_provider.take(sender, 1, most)) is not None:
                raise busy(self._meters, "in_flight" if bound == "all" else sender_bound)
            places.give_back(sender, 1)
            places = self._of_provider

        scope[WAIT_FOR_MODEL] = wait_for_model
        self._meters.in_flight.inc()
        try:
            await self._app(scope, receive, send)
        finally:
            self._meters.in_flight.dec()
            places.give_back(sender, 1)


SENDER_BOUNDS = ("in_flight_per_key", "in_flight_per_address", "body_bytes_per_sender")
"""Limits of one sender, which alone has to wait."""


def busy(meters: Meters, limit: str) -> Refused:
    """Count a request above a limit of the gateway, or of its sender; return its refusal."""
    meters.limited.labels(limit).inc()
    if limit in SENDER_BOUNDS:
        message = "too many of your requests are under way: wait for answers"
        return Refused("too_many_requests", message, retry_after_s=RETRY_AFTER_S)
    return Refused("unavailable", "this gateway is overloaded; try again", retry_after_s=RETRY_AFTER_S)


def is_streaming(scope: Scope) -> bool:
    """True for a request whose answer stays open, or whose body is read piece by piece."""
    if scope["method"] == "POST":
        return is_spooled(scope)
    return scope["method"] == "GET" and is_stream(scope["path"])


SPOOLED = re.compile(r"/v1/users/[^/]+/(imports|files)|/admin/(add/import|files)")
"""The paths whose body is read by its route, a piece at a time."""


def is_spooled(scope: Scope) -> bool:
    """True for a request whose body is read by its route."""
    return scope["type"] == "http" and scope["method"] == "POST" and SPOOLED.fullmatch(scope["path"]) is not None


async def pieces_of(request: Request) -> AsyncIterator[bytes]:
    """Yield the pieces of a body that is read by its route. Raises Refused for one that comes too slowly."""
    limits: Limits = request.scope[BODY_LIMITS]
    began = asyncio.get_running_loop().time()
    size = 0
    pieces = request.stream()
    while True:
        try:
            async with asyncio.timeout_at(began + seconds_of_body(limits, size)):
                piece = await anext(pieces, None)
        except (TimeoutError, ClientDisconnect):
            raise Refused("timeout", "the body of this request did not come in time; send it again") from None
        if piece is None:
            return
        size += len(piece)
        yield piece


async def read_upload(
    request: Request, max_bytes: int, too_large: Refused, unreadable: Refused, **bounds: int
) -> FormData:
    """Read a form, streaming its files to disk; `bounds` are the parser's limits.

    Raises Refused: `too_large` beyond `max_bytes`, `unreadable`, or one for a body that comes too slowly.
    """

    async def bounded() -> AsyncGenerator[bytes]:
        size = 0
        async for piece in pieces_of(request):
            size += len(piece)
            if size > max_bytes:
                raise too_large
            yield piece

    try:
        return await MultiPartParser(request.headers, bounded(), **bounds).parse()
    except (MultiPartException, UnicodeDecodeError, LookupError):
        raise unreadable from None


MAX_BODY_BYTES = 16 * 1024 * 1024
"""Maximum bytes of a body (docs/contract.md)."""

MAX_FORM_BYTES = 4096
"""Maximum bytes of an unauthenticated body: a sign-in form has a key and an address."""

SMALL_BODY_BYTES = 64 * 1024
"""Bodies up to this size do not use `body_bytes`: the HTTP library holds as much of each connection in any case."""

MAX_SHARE = 4
"""A sender may use `body_bytes` divided by this."""


class ReadBodies:
    """Answers 413 for a too large body, 408 for a too slow one, 429 or 503 without room."""

    def __init__(self, app: ASGIApp, limits: Limits, meters: Meters, forms: Collection[str] = ()) -> None:
        """`forms` are the paths of sign-in forms: they take small bodies only."""
        self._app = app
        self._limits = limits
        self._meters = meters
        self._forms = frozenset(forms)
        self._room = Shares(limits.body_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope) if scope["type"] == "http" else Headers()
        announced = headers.get("content-length", "0")
        if spooled := is_spooled(scope):
            scope[BODY_LIMITS] = self._limits
        if spooled or (announced == "0" and "transfer-encoding" not in headers):
            await self._app(scope, receive, send)
            return
        is_for_anybody = "caller" not in scope or scope["path"] in self._forms
        reading = _Reading(self._room, scope, MAX_FORM_BYTES if is_for_anybody else MAX_BODY_BYTES)
        try:
            try:
                reading.check(int(announced[:20]) if announced.isdecimal() else 0)
                body = await self._body(reading, receive)
            except Refused as refused:
                status = 408 if refused.code == "timeout" else None
                await problem(refused, scope["request_id"], status)(scope, receive, send)
                return
            if body is not None:
                await self._app(scope, _once(body, receive), send)
        finally:
            reading.end()

    async def _body(self, reading: "_Reading", receive: Receive) -> bytes | None:
        """Return the body; None if the caller has hung up. Raises Refused."""
        began = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(began + self._limits.body_seconds) as time_limit:
                while (message := await receive())["type"] != "http.disconnect":
                    if (bound := reading.add(message.get("body", b""))) is not None:
                        raise busy(self._meters, "body_bytes" if bound == "all" else "body_bytes_per_sender")
                    if not message.get("more_body", False):
                        break
                    time_limit.reschedule(began + seconds_of_body(self._limits, reading.size))
                else:
                    return None
        except TimeoutError:
            self._meters.limited.labels("body_seconds").inc()
            raise Refused("timeout", "the body of this request did not come in time; send it again") from None
        return await reading.whole()


def seconds_of_body(limits: Limits, size: int) -> float:
    """Return the time limit of a body of which this many bytes have arrived."""
    return limits.body_seconds + size / limits.body_bytes_per_second


class _Reading:
    """The pieces of one body, and their room until `end`."""

    def __init__(self, room: Shares, scope: Scope, max_bytes: int) -> None:
        self.size = 0
        self._room = room
        self._sender, _ = sender_of(scope)
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._lent = 0

    def check(self, size: int) -> None:
        """Raise Refused, `too_large`, for a body of this size."""
        if size > self._max_bytes:
            raise Refused("too_large", SENTENCES_OF_HTTP[413])

    def add(self, piece: bytes) -> str | None:
        """Add a piece; return the limit of `Shares` that it would break. Raises Refused, `too_large`."""
        self.size += len(piece)
        self.check(self.size)
        if self.size > SMALL_BODY_BYTES:
            most = max(self._room.total // MAX_SHARE, MAX_BODY_BYTES)
            if (bound := self._room.take(self._sender, self.size - self._lent, most)) is not None:
                return bound
            self._lent = self.size
        self._pieces.append(piece)
        return None

    async def whole(self) -> bytes:
        """Return the body. Raises Refused, `too_large`, for one with too many values to be parsed."""
        body = b"".join(self._pieces)
        self._pieces = []
        # In a thread: it takes about 50 ms for 16 MiB.
        if len(body) > SMALL_BODY_BYTES and await asyncio.to_thread(count_values, body) > MAX_VALUES:
            raise Refused("too_large", f"a body has at most {MAX_VALUES:,} values")
        return body

    def end(self) -> None:
        self._room.give_back(self._sender, self._lent)


def _once(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body, and then the connection's events, such as a hang-up."""
    message: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def receive_whole() -> Message:
        nonlocal message
        if message is None:
            return await receive()
        first, message = message, None
        return first

    return receive_whole
