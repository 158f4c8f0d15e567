"""The transport over the gateway: each record is one HTTP request, each answer its reply.

`Prefer: wait` carries the timeout. The places of written turns are remembered by user, so that a query can read after
them. What runs longer than the gateway waits is begun, and asked for until it ends.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx

from modestream_client.answers import Reply, unreadable_reply
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.failures import MemoryClosed, MemoryServiceError, MemoryTimeout, MemoryUnreachable
from modestream_client.http.composed import compose
from modestream_client.http.problems import failure_of, reply_of_answer
from modestream_client.http.routes import Route, route_of
from modestream_client.records import TURNS_TOPIC, Written
from modestream_client.transport import OWN_WRITES, HeadersOf, Json, ReadAfter

MAX_WAIT_S = 60.0
"""The longest `Prefer: wait` of the gateway."""

MIN_WAIT_S = 0.1
"""The shortest one."""

ANSWER_MARGIN_S = 1.0
"""What an answer may take beyond the timeout: the gateway's own says more than an end of the wait here."""

KEEP_ALIVE_S = 2.0
"""Servers close idle connections after five seconds: the side that closes first must be the client."""

POLL_INTERVAL_S = 0.5
"""The pause between two questions for a run that was begun."""


class HttpTransport:
    """One pool of connections to the gateway. Belongs to one event loop. Implements `Transport`."""

    def __init__(
        self,
        url: str,
        key: str | None,
        timeout: float,
        headers: HeadersOf | None,
        client: httpx.AsyncClient | None,
        boundary: BoundaryFields = USER_BOUNDARY,
    ) -> None:
        """`client` is used as it is, and stays open; without one this has its own.

        `boundary` are the boundary fields of the service's scopes, which stand in paths.
        """
        self._boundary = boundary
        self._url = url.rstrip("/")
        self._key_headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._timeout = timeout
        self._headers_of = headers or dict[str, str]
        self._given = client
        self._client: httpx.AsyncClient | None = None
        self._last_turn: dict[str, Written] = {}

    async def open(self) -> None:
        """Look whether there is a gateway, and whether it knows the key.

        Raises `MemoryUnreachable`, or `MemoryServiceError` with code `unauthenticated`.
        """
        limits = httpx.Limits(keepalive_expiry=KEEP_ALIVE_S)
        self._client = self._given or httpx.AsyncClient(limits=limits)
        try:
            async with _limited(self._timeout):
                _reply(await self._send(Route("GET", "/v1/me"), {}), {})
        except MemoryTimeout as problem:
            await self.close()
            raise MemoryUnreachable(str(problem)) from problem
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Disconnect."""
        client, self._client = self._client, None
        if client is not None and client is not self._given:
            await client.aclose()

    async def resolve_read_after(self, user_id: str, read_after: ReadAfter) -> str | None:
        """Return the place to read after; for `OWN_WRITES` that of the last turn written here."""
        if read_after == OWN_WRITES:
            place = self._last_turn.get(user_id)
            return place and place.read_after
        if isinstance(read_after, int):
            raise TypeError("over HTTP read_after is '<partition>:<offset>', as the results of writes have it")
        return read_after

    async def write(self, topic: str, record: Json, *, principal: str | None, timeout: float | None) -> Written:
        """Send a record and wait for its answer: the gateway answers no earlier. Returns the place of a turn."""
        _, place = await self.request(topic, record, principal=principal, timeout=timeout, deadline=False)
        if place is None:
            raise ValueError(f"the gateway tells no place of a record on {topic}")
        return place

    async def request(
        self,
        topic: str,
        record: Json,
        *,
        principal: str | None = None,
        timeout: float | None = None,
        deadline: bool = True,  # noqa: ARG002 - the gateway decides
    ) -> tuple[Reply, Written | None]:
        """Send a record and wait for its answer. Raises ValueError for one that the gateway has no route for."""
        if principal is not None:
            raise ValueError("over HTTP the key says what the caller may do: pass `key` to the client, not a principal")
        limit = self._timeout if timeout is None else timeout
        if (composed := compose(record, lambda part: self._ask(part, limit))) is not None:
            return await composed, None
        reply = await self._ask(record, limit)
        return (reply, self._note_turn(record, reply)) if topic == TURNS_TOPIC else (reply, None)

    async def _ask(self, record: Json, limit: float) -> Reply:
        route = route_of(record, self._boundary)
        is_begun = route.runs_long and limit > MAX_WAIT_S
        prefer = "respond-async" if is_begun else f"wait={min(max(limit, MIN_WAIT_S), MAX_WAIT_S):g}"
        async with _limited(limit):
            answer = await self._send(route, {"Prefer": prefer})
            while answer.status_code == httpx.codes.ACCEPTED:
                await asyncio.sleep(POLL_INTERVAL_S)
                answer = await self._send(Route("GET", _place_of_run(answer)), {})
        return _reply(answer, record)

    async def _send(self, route: Route, headers: Mapping[str, str]) -> httpx.Response:
        client = self._client
        if client is None:
            raise MemoryClosed("the client is not open: use it inside `async with HttpMemoryClient(…)`")
        every = {**self._key_headers, **self._headers_of(), **headers}
        try:
            return await client.request(
                route.method, self._url + route.path, params=route.query, json=route.body, headers=every, timeout=None
            )
        except (httpx.TransportError, httpx.InvalidURL, RuntimeError) as problem:
            if self._client is None:
                raise MemoryClosed("the client was closed before the answer came") from problem
            raise MemoryUnreachable(
                f"no connection to the gateway at {self._url}: {problem!r}: is it up (`python -m streams up`)?"
            ) from problem

    def _note_turn(self, record: Json, reply: Reply) -> Written:
        try:
            place = Written.parse(reply.result["read_after"])
        except (KeyError, TypeError, MemoryServiceError) as problem:
            raise unreadable_reply(problem) from problem
        user = self._boundary.name(record["scope"])
        self._last_turn[user] = max(place, self._last_turn.get(user, place))
        return place


def _reply(answer: httpx.Response, record: Json) -> Reply:
    if not answer.is_success:
        raise failure_of(answer.status_code, answer.content, record)
    return reply_of_answer(answer.content)


@asynccontextmanager
async def _limited(limit: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(limit + ANSWER_MARGIN_S):
            yield
    except TimeoutError:
        raise MemoryTimeout(
            f"no answer of the gateway within {limit:g} s: is it reachable? The request may have been carried out; "
            "a retry is safe."
        ) from None


def _place_of_run(answer: httpx.Response) -> str:
    """Return the path where a run's answer will be; of an address its path alone, so that the key stays here."""
    location = answer.headers.get("location")
    if not location:
        raise unreadable_reply(KeyError("Location"))
    return httpx.URL(location).raw_path.decode("ascii")
