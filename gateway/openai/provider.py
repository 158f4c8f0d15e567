"""The provider behind the address, and its answers on their way to the caller.

Guaranteed: the provider gets only its own key, and a few known header fields of the caller; bytes of an answer pass as
they come; a caller that hangs up ends the provider's work; no redirect is followed.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.openai.memory import PREFIX
from gateway.service.calls import RETRY_AFTER_S, Refused

log = logging.getLogger(__name__)

TIMEOUT = httpx.Timeout(connect=10, read=600, write=60, pool=10)
"""Timeouts in seconds; `read` is between two bytes: reasoning models are silent for minutes."""

KEEP_ALIVE_S = 4.0
"""Seconds that an idle connection stays open: this side must close first, and servers close theirs after five."""

REQUEST_FIELDS = frozenset((b"accept", b"content-type", b"openai-beta", b"user-agent"))
"""Header fields of a caller that the provider gets."""

DROPPED_FIELDS = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding"
    b" upgrade set-cookie location alt-svc strict-transport-security www-authenticate x-request-id server date".split()
)
"""Header fields of an answer that concern the connection to the provider, or that a provider may not set for our
callers."""

DROPPED_PREFIXES = (PREFIX.encode(), b"access-control-")

RawHeaders = Sequence[tuple[bytes, bytes]]
"""Header fields as they came, names in lower case."""


class Passing:
    """Callbacks while an answer passes; all are optional."""

    def begin(self, headers: Mapping[str, str]) -> None:
        """The provider has begun a successful answer."""

    def feed(self, piece: bytes) -> None:
        """Some bytes have come."""

    def end(self) -> None:
        """The answer is complete."""


class Provider:
    """Sends requests to the provider of the deployment."""

    def __init__(self, url: str | None, key: str | None = None, connections: int = 256) -> None:
        """`url` ends before `/chat/completions`; None without a provider."""
        self._url = None if url is None else url.rstrip("/")
        self._headers = [] if key is None else [(b"authorization", f"Bearer {key}".encode())]
        self._connections = connections
        self._client: httpx.AsyncClient | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        limits = httpx.Limits(max_connections=self._connections, keepalive_expiry=KEEP_ALIVE_S)
        # Otherwise one caller's cookies would be shared by all.
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=()))
        async with httpx.AsyncClient(timeout=TIMEOUT, limits=limits, cookies=no_cookies) as client:
            self._client = client
            yield
        self._client = None

    def require(self) -> None:
        """Raise Refused, `unavailable`, without a provider."""
        if self._url is None:
            raise Refused("unavailable", "this gateway has no provider: its operator sets OPENAI_UPSTREAM")

    async def send(self, method: str, path: str, headers: RawHeaders, body: bytes | None) -> httpx.Response:
        """Return an answer whose body is still to come. Raises Refused."""
        self.require()
        assert self._client is not None
        passed = [(name, value) for name, value in headers if name in REQUEST_FIELDS]
        # Not compressed: it is read on its way.
        own = [(b"accept-encoding", b"identity"), *self._headers]
        request = self._client.build_request(method, f"{self._url}{path}", headers=[*passed, *own], content=body)
        try:
            response = await self._client.send(request, stream=True)
        except httpx.TimeoutException as error:
            log.warning("no answer of the provider: %r", error)
            raise Refused("timeout", "the provider did not answer in time") from None
        except httpx.HTTPError as error:
            log.warning("no answer of the provider: %r", error)
            raise Refused(
                "unavailable", "the provider can't be reached, or has hung up", retry_after_s=RETRY_AFTER_S
            ) from None
        if response.is_redirect:
            await response.aclose()
            log.error("the provider redirects to another address: is OPENAI_UPSTREAM right?")
            raise Refused("internal", "the provider answered with a redirect, which is not followed")
        return response


class Relay(Response):
    """An answer of the provider as it comes, with further header fields."""

    def __init__(
        self,
        asking: Callable[[], Awaitable[httpx.Response]],
        more: Mapping[bytes, bytes] | None = None,
        passing: Passing | None = None,
    ) -> None:
        super().__init__()
        self._asking = asking
        self._more = more or {}
        self._passing = passing or Passing()

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        """Ask, and pass the answer on, until the caller hangs up. Raises Refused without an answer."""
        relaying = asyncio.ensure_future(self._relay(send))
        leaving = asyncio.ensure_future(_hung_up(receive))
        try:
            await asyncio.wait({relaying, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if relaying.done():
                relaying.result()
        finally:
            relaying.cancel()
            leaving.cancel()
            await asyncio.gather(relaying, leaving, return_exceptions=True)

    async def _relay(self, send: Send) -> None:
        response = await self._asking()
        try:
            await send({"type": "http.response.start", "status": response.status_code, "headers": self._head(response)})
            is_heard = response.is_success
            if is_heard:
                self._passing.begin(response.headers)
            async for piece in response.aiter_bytes() if _is_decoded(response) else response.aiter_raw():
                if is_heard:
                    self._passing.feed(piece)
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            if is_heard:
                self._passing.end()
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except httpx.HTTPError as error:
            # Without its end: the server closes the connection, so that the caller sees that something is missing.
            log.warning("the answer of the provider broke off: %r", error)
        finally:
            with suppress(httpx.HTTPError):
                await response.aclose()

    def _head(self, response: httpx.Response) -> list[tuple[bytes, bytes]]:
        dropped = {name.strip() for name in response.headers.get("connection", "").lower().encode().split(b",")}
        if _is_decoded(response):
            dropped |= {b"content-encoding", b"content-length"}
        passed = (
            (name.lower(), value)
            for name, value in response.headers.raw
            if name.lower() not in DROPPED_FIELDS | dropped and not name.lower().startswith(DROPPED_PREFIXES)
        )
        return [*passed, *self._more.items()]


def _is_decoded(response: httpx.Response) -> bool:
    """True for a compression whose answer can be read as it passes; others are passed on unread."""
    return response.headers.get("content-encoding") in ("gzip", "deflate")


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
