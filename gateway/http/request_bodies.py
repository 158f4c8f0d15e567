"""ASGI middleware: reads a request's body whole, within its bounds, before the request counts as under way.

Enters: a body, announced or in pieces. Leaves: the same in one piece. Guaranteed: it has 16 MiB at most, 4 KiB from a
sender that is not known and in a form of sign-in; it comes within its time; all bodies together take bounded memory, of
which no sender has more than a quarter; a large one has a bounded number of JSON values.
A caller that hangs up meanwhile gets no answer, and is no error.
"""

import asyncio
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.limits import Limits, Shares, busy, sender_of
from gateway.http.problems import SENTENCES_OF_HTTP, problem
from gateway.service.failures import Refused
from gateway.service.meters import Meters
from schemas.messages.decoding import MAX_VALUES, count_values

MAX_BODY_BYTES = 16 * 1024 * 1024
"""Bytes of a body (docs/contract.md)."""

MAX_FORM_BYTES = 4096
"""Bytes of a body without a known sender: a form of sign-in has a key and an address."""

SMALL_BODY_BYTES = 64 * 1024
"""Bodies up to this take no share of `body_bytes`: the HTTP library holds as much of each connection in any case."""

MAX_SHARE = 4
"""A sender has one part of this many of `body_bytes`."""


class ReadBodies:
    """Answers 413 for a body that is too large, 408 for one that is too slow, 429 or 503 where there is no room."""

    def __init__(self, app: ASGIApp, limits: Limits, meters: Meters, forms: Collection[str] = ()) -> None:
        """`forms` are paths to which a sender posts to become known."""
        self._app = app
        self._limits = limits
        self._meters = meters
        self._forms = frozenset(forms)
        self._room = Shares(limits.body_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body of a request, if it has one, and pass both on."""
        if scope["type"] != "http" or not _has_body(headers := Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        announced = headers.get("content-length", "")
        reading = _Reading(self._room, scope, self._max_bytes(scope))
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

    def _max_bytes(self, scope: Scope) -> int:
        is_for_anybody = "caller" not in scope or scope["path"] in self._forms
        return MAX_FORM_BYTES if is_for_anybody else MAX_BODY_BYTES

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
    """Return the time for a body of which so many bytes have come."""
    return limits.body_seconds + size / limits.body_bytes_per_second


class _Reading:
    """The pieces of one body, and the room that they take until `end`."""

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
        """Keep a piece; return the bound of `Shares` that it would break. Raises Refused, `too_large`."""
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
        # Beside the event loop: it takes some 50 ms for 16 MiB.
        if len(body) > SMALL_BODY_BYTES and await asyncio.to_thread(count_values, body) > MAX_VALUES:
            raise Refused("too_large", f"a body has at most {MAX_VALUES:,} values")
        return body

    def end(self) -> None:
        """Give back the room."""
        self._room.give_back(self._sender, self._lent)


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _once(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives the body, and then what comes from the connection: that its caller hangs up."""
    message: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def receive_whole() -> Message:
        nonlocal message
        if message is None:
            return await receive()
        first, message = message, None
        return first

    return receive_whole
