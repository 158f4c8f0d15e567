"""The client over the gateway: the calls of `MemoryClient`, with the same results and errors.

    async with HttpMemoryClient("http://127.0.0.1:8080", user_id="u1") as memory:
        await memory.remember("The deploy target is fly.io now.", speaker="Ana")
        answer = await memory.retrieve("where do we deploy?")
        print(answer.hits[0].text)

Needs the extra `http`: `pip install './client[http]'`. A query sees the earlier writes of this client, and with
`read_after` those of any other client. A client belongs to one event loop, is meant to stay open, and serves any number
of concurrent calls and users.
"""

import asyncio
import json
import mimetypes
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Unpack

import httpx

from modestream_client.answers import Reply, Uploaded, parse_as, remembered_of, unreadable_reply
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.calls import MemoryCalls
from modestream_client.calls.memories import ImportOptions
from modestream_client.calls.session import DEFAULT_TIMEOUT_S, UserId
from modestream_client.failures import MemoryClosed, MemoryServiceError, MemoryTimeout, MemoryUnreachable
from modestream_client.http.routes import (
    Route,
    compose,
    encode_segment,
    failure_of,
    read_events,
    reply_of_answer,
    route_of,
)
from modestream_client.operations import USER
from modestream_client.outbox import with_outbox
from modestream_client.records import TURNS_TOPIC, Written
from modestream_client.results import Imported
from modestream_client.sync import SyncMemoryCalls, constructed_as, without_await
from modestream_client.transport import OWN_WRITES, HeadersOf, Json, OnPartial, ReadAfter

if TYPE_CHECKING:
    from modestream_client.imports import ExportFormat

MAX_EXPORT_BYTES = 256 * 1024 * 1024
"""Maximum bytes of an export for the gateway (docs/contract.md)."""

PIECE_BYTES = 256 * 1024
"""Bytes of an export read at once."""

PATIENCE_S = 900.0
"""Seconds of retries for an import, while the gateway or the service is away."""

OUTAGES = (429, 502, 503, 504)
"""Statuses of a gateway that can't answer for the moment."""

MAX_WAIT_S = 60.0
"""The longest `Prefer: wait` of the gateway."""

MIN_WAIT_S = 0.1
"""The shortest one."""

ANSWER_MARGIN_S = 1.0
"""Time that an answer may take beyond the timeout: the gateway's own timeout error says more than one raised here."""

KEEP_ALIVE_S = 2.0
"""Servers close idle connections after five seconds: the client must close first."""

POLL_INTERVAL_S = 0.5


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
        """`client` is used as it is, and stays open; without it, a new one is used.

        `boundary` are the boundary fields of the service's scopes, which stand in paths.
        """
        self._boundary = boundary
        self._url = url.rstrip("/")
        self._key_headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self.timeout = timeout
        self._headers_of = headers or dict[str, str]
        self._shared_client = client
        self._client: httpx.AsyncClient | None = None
        self._last_turn: dict[str, Written] = {}

    async def open(self) -> None:
        """Check that the gateway answers and accepts the key.

        Raises `MemoryUnreachable`, or `MemoryServiceError` with code `unauthenticated`.
        """
        limits = httpx.Limits(keepalive_expiry=KEEP_ALIVE_S)
        self._client = self._shared_client or httpx.AsyncClient(limits=limits)
        try:
            async with _limited(self.timeout):
                _reply(await self._send(Route("GET", "/v1/me"), {}), {})
        except MemoryTimeout as problem:
            await self.close()
            raise MemoryUnreachable(str(problem)) from problem
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None and client is not self._shared_client:
            await client.aclose()

    async def resolve_read_after(self, user_id: str, read_after: ReadAfter) -> str | None:
        """Return the position to read after; for `OWN_WRITES`, the position of the last turn written here."""
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
            raise ValueError(f"the gateway returns no position for a record on {topic}")
        return place

    async def request(
        self,
        topic: str,
        record: Json,
        *,
        principal: str | None = None,
        timeout: float | None = None,
        deadline: bool = True,  # noqa: ARG002 - the gateway decides
        on_partial: OnPartial | None = None,
    ) -> tuple[Reply, Written | None]:
        """Send a record and wait for its answer. Raises ValueError for one without a route of the gateway."""
        if principal is not None:
            raise ValueError("over HTTP the key identifies the caller: pass `key` to the client, not a principal")
        limit = self.timeout if timeout is None else timeout
        if on_partial is not None:
            return await self._streamed(record, limit, on_partial), None
        if (composed := compose(record, lambda part: self._ask(part, limit))) is not None:
            return await composed, None
        reply = await self._ask(record, limit)
        if topic != TURNS_TOPIC:
            return reply, None
        try:
            place = Written.parse(reply.result["read_after"])
        except (KeyError, TypeError, MemoryServiceError) as problem:
            raise unreadable_reply(problem) from problem
        user = self._boundary.name(record["scope"])
        self._last_turn[user] = max(place, self._last_turn.get(user, place))
        return reply, place

    async def import_file(self, user_id: str, query: Json, file: IO[bytes], on_answer: Callable[[Json], None]) -> Reply:
        """Send an export, and wait until it is imported, reporting every answer about it.

        Raises the errors of `request`; an outage is waited out for `PATIENCE_S`.
        """
        pieces = iter(lambda: file.read(PIECE_BYTES), b"")

        async def body() -> AsyncIterator[bytes]:
            while piece := await asyncio.to_thread(next, pieces, b""):
                yield piece

        path = f"{USER.format(user_id=encode_segment(user_id))}/imports"
        answer = await self._send(
            Route("POST", path, query=query), {"Content-Type": "application/octet-stream"}, body()
        )
        clock = asyncio.get_running_loop().time
        ends = clock() + PATIENCE_S
        while True:
            if answer.status_code == httpx.codes.ACCEPTED:
                on_answer(answer.json())
                job, ends = httpx.URL(answer.headers["location"]).raw_path.decode("ascii"), clock() + PATIENCE_S
            elif answer.status_code not in OUTAGES or clock() > ends or answer.request.method == "POST":
                return _reply(answer, {})
            await asyncio.sleep(POLL_INTERVAL_S)
            with suppress(MemoryUnreachable):
                answer = await self._send(Route("GET", job), {})

    async def upload(
        self,
        user_id: str,
        content: IO[bytes] | bytes,
        name: str,
        media_type: str,
        fields: Mapping[str, str],
        limit: float,
    ) -> tuple[Reply, Written]:
        """Send a file with the fields of its turn, and wait until both are stored. Raises the errors of `request`."""
        url = f"{self._url}{_files_of(user_id)}"
        sent: Any = {"files": {"file": (name, content, media_type)}, "data": dict(fields)}
        headers = self._every_header({"Prefer": f"wait={min(max(limit, MIN_WAIT_S), MAX_WAIT_S):g}"})
        async with self._reaching() as client:
            reply = _reply(await client.post(url, headers=headers, timeout=None, **sent), {})
        place = Written.parse(reply.result["read_after"])
        self._last_turn[user_id] = max(place, self._last_turn.get(user_id, place))
        return reply, place

    async def download(self, user_id: str, sha256: str) -> bytes:
        """Return the bytes of a file. Raises the errors of `request`."""
        answer = await self._send(Route("GET", f"{_files_of(user_id)}/{encode_segment(sha256)}"), {})
        if not answer.is_success:
            raise failure_of(answer.status_code, answer.content, {})
        return answer.content

    async def _ask(self, record: Json, limit: float) -> Reply:
        route = route_of(record, self._boundary)
        is_begun = route.runs_long and limit > MAX_WAIT_S
        prefer = "respond-async" if is_begun else f"wait={min(max(limit, MIN_WAIT_S), MAX_WAIT_S):g}"
        async with _limited(limit):
            answer = await self._send(route, {"Prefer": prefer})
            while answer.status_code == httpx.codes.ACCEPTED:
                await asyncio.sleep(POLL_INTERVAL_S)
                if not (location := answer.headers.get("location")):
                    raise unreadable_reply(KeyError("Location"))
                # Only the path of the address, so that the key stays here.
                answer = await self._send(Route("GET", httpx.URL(location).raw_path.decode("ascii")), {})
        return _reply(answer, record)

    async def _streamed(self, record: Json, limit: float, on_partial: OnPartial) -> Reply:
        """Ask for an answer as server-sent events."""
        route = route_of(record, self._boundary)
        headers = {"Prefer": f"wait={min(max(limit, MIN_WAIT_S), MAX_WAIT_S):g}"}
        body = {**(route.body or {}), "stream": True}
        asked: Any = {"json": body, "headers": self._every_header(headers), "timeout": None}
        async with (
            _limited(limit),
            self._reaching() as client,
            client.stream(route.method, self._url + route.path, **asked) as answer,
        ):
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                await answer.aread()
                return _reply(answer, record)
            return await read_events(answer.aiter_lines(), on_partial, record)

    async def _send(
        self, route: Route, headers: Mapping[str, str], content: AsyncIterator[bytes] | None = None
    ) -> httpx.Response:
        every = self._every_header(headers)
        async with self._reaching() as client:
            return await client.request(
                route.method,
                self._url + route.path,
                params=route.query,
                json=route.body,
                content=content,
                headers=every,
                timeout=None,
            )

    def _every_header(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {**self._key_headers, **self._headers_of(), **headers}

    @asynccontextmanager
    async def _reaching(self) -> AsyncIterator[httpx.AsyncClient]:
        """Yield the pool of connections; its errors become the client's errors."""
        client = self._client
        if client is None:
            raise MemoryClosed("the client is not open: use it inside `async with HttpMemoryClient(…)`")
        try:
            yield client
        except (httpx.TransportError, httpx.InvalidURL, RuntimeError) as problem:
            if self._client is None:
                raise MemoryClosed("the client was closed before the answer came") from problem
            raise MemoryUnreachable(
                f"no connection to the gateway at {self._url}: {problem!r}: is it up (`modestream up`)?"
            ) from problem


def _files_of(user_id: str) -> str:
    return f"{USER.format(user_id=encode_segment(user_id))}/files"


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


class HttpMemoryClient(MemoryCalls):
    """Calls of the memory service through its gateway, used as `async with HttpMemoryClient(…) as memory`.

    Differences from `MemoryClient`: the key decides the caller's permissions, so passing `principal` is a ValueError;
    an error of the gateway can also have the codes `unauthenticated` and `too_many_requests`; a command without a route
    (`rename_category`, and unknown ones) is a ValueError. A context ends with the question.

    Parameters
    ----------
    url
        The gateway's address, such as `http://127.0.0.1:8080`.
    key
        The key, `ms_…`; a gateway that listens on loopback only may not need one.
    user_id, project_id, scope, boundary
        As in `MemoryClient`.
    timeout
        Limit of a call in seconds. The gateway waits for at most 60 s; jobs and consolidations that may take longer are
        begun, and asked for until they end.
    headers
        Called for each request; returns further headers, such as `traceparent`.
    client
        An `httpx.AsyncClient` of the program, for its own proxies and certificates; stays open.
    outbox
        As in `MemoryClient`.
    """

    appends_query = True

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        user_id: UserId | None = None,
        project_id: str = "default",
        timeout: float = DEFAULT_TIMEOUT_S,
        scope: Mapping[str, str] | None = None,
        boundary: Sequence[str] = USER_BOUNDARY,
        headers: HeadersOf | None = None,
        client: httpx.AsyncClient | None = None,
        outbox: str | PathLike[str] | None = None,
    ) -> None:
        fields = BoundaryFields(boundary)
        self._http = HttpTransport(url, key, timeout, headers, client, fields)
        transport = with_outbox(self._http, outbox, timeout, fields)
        super().__init__(transport, user_id=user_id, project_id=project_id, scope=scope, boundary=fields)

    async def import_export(
        self,
        path: str | PathLike[str],
        format: "ExportFormat",  # noqa: A002 - its name in the contract
        **options: Unpack[ImportOptions],
    ) -> Imported:
        """Import an export as `MemoryClient` does.

        The gateway reads a file of up to 256 MiB; a larger one is read here, and sent turn by turn.
        """
        from modestream_client.imports.publishing import COUNTS, Tally  # noqa: PLC0415 - needed here alone

        is_continued = options.get("tally") is not None
        is_large = Path(path).stat().st_size > MAX_EXPORT_BYTES  # noqa: ASYNC240 - a local file
        if is_continued or is_large or options.get("principal") is not None:
            return await super().import_export(path, format, **options)
        user_id, on_progress = options.get("user_id"), options.get("on_progress")
        scope = self._boundary.others(self._scope(user_id, options.get("project_id")))
        if options.get("project_id") is None and format == "jsonl":
            # Lines keep their own project, unless one is named here.
            del scope["project_id"]
        asked = {
            "format": format,
            "zone": options.get("zone"),
            "mode": options.get("mode"),
            "mode_for": [*options.get("mode_for", ())] or None,
        }
        query = {**scope, **{name: value for name, value in asked.items() if value is not None}}

        def tell(answer: Json) -> None:
            if on_progress is not None:
                on_progress(Tally(**{name: answer[name] for name in COUNTS}))

        with Path(path).open("rb") as file:  # noqa: ASYNC230 - opened here, read in a thread
            reply = await self._http.import_file(self._users(user_id)[0], query, file, tell)
        return parse_as(Imported, reply.result)

    async def upload(
        self,
        file: str | PathLike[str] | bytes,
        *,
        name: str | None = None,
        media_type: str | None = None,
        conversation_id: str = "default",
        content: str | None = None,
        occurred_at: datetime | str | None = None,
        mode: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        user_id: UserId | None = None,
        project_id: str | None = None,
        timeout: float | None = None,
    ) -> Uploaded:
        """Remember a file: it becomes a turn, and its text is found once the service has read it.

        >>> made = await memory.upload("report.pdf", conversation_id="c1")
        >>> made.resource["status"]
        'pending'

        Parameters
        ----------
        file
            The path of the file, or its bytes.
        name
            The file's name; default: the name in the path, else `file`.
        media_type
            The media type; default: derived from the name.
        content
            The text of the turn; default: the file's name.
        conversation_id, occurred_at, mode, metadata
            Those of the turn, as in `remember`. The same file at the same time with the same fields is a duplicate.
        """
        path = None if isinstance(file, bytes) else Path(file)
        shown = name or (path.name if path is not None else "file")
        kind = media_type or mimetypes.guess_type(shown)[0] or "application/octet-stream"
        scope = self._boundary.others(self._scope(user_id, project_id))
        when = occurred_at.isoformat() if isinstance(occurred_at, datetime) else occurred_at
        about = {"conversation_id": conversation_id, "content": content, "occurred_at": when, "mode": mode}
        fields = {**scope, **{field: value for field, value in about.items() if value is not None}}
        if metadata is not None:
            fields["metadata"] = json.dumps(metadata)
        limit = self._http.timeout if timeout is None else timeout
        users = self._users(user_id)
        with ExitStack() as stack:
            body = file if isinstance(file, bytes) else stack.enter_context(Path(file).open("rb"))  # noqa: ASYNC230 - sent in pieces
            reply, place = await self._http.upload(users[0], body, shown, kind, fields, limit)
        return Uploaded(remembered_of(reply, place), dict(reply.result["resource"]))

    async def download(self, sha256: str, *, user_id: UserId | None = None) -> bytes:
        """Return the bytes of a file that a memory of the user has."""
        return await self._http.download(self._users(user_id)[0], sha256)


class SyncHttpMemoryClient(SyncMemoryCalls):
    """`HttpMemoryClient` without `await`, used as `with SyncHttpMemoryClient(…) as memory`, from any number of threads.

    `headers` is called in the client's own thread, with the context variables of the caller. Only this client's event
    loop uses a `client` of the program.
    """

    @constructed_as(HttpMemoryClient)
    def __init__(self) -> None: ...

    import_export = without_await(HttpMemoryClient.import_export)
    upload = without_await(HttpMemoryClient.upload)
    download = without_await(HttpMemoryClient.download)
