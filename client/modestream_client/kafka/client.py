"""The client over Kafka: a request is a record, its reply comes from the shared reply topic.

    async with MemoryClient("127.0.0.1:9092", user_id="u1") as memory:
        await memory.remember("The deploy target is fly.io now.", speaker="Ana")
        answer = await memory.retrieve("where do we deploy?")
        print(answer.hits[0].text)

Every call ends with its result or with one of the errors of `modestream_client.failures`, within its timeout. A query
sees the earlier writes of this client (read your own writes). A client belongs to one event loop, is meant to stay
open, and serves any number of concurrent calls and users.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from os import PathLike

from modestream_client.answers import Json, Reply, reply_of
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.calls import MemoryCalls
from modestream_client.calls.session import DEFAULT_TIMEOUT_S, UserId
from modestream_client.failures import MemoryClosed, MemoryTimeout, MemoryUnreachable
from modestream_client.kafka.connection import (
    CORRELATION_ID,
    REPLIES_TOPIC,
    Connection,
    PendingReplies,
    open_connection,
)
from modestream_client.kafka.security import KafkaSecurity
from modestream_client.outbox import with_outbox
from modestream_client.records import TURNS_TOPIC, Written, invalid_read_after, with_identity
from modestream_client.sync import SyncMemoryCalls, constructed_as, without_await
from modestream_client.transport import OWN_WRITES, HeadersOf, OnPartial, ReadAfter

MAX_LAST_TURNS = 100_000
"""Boundaries whose last turn is remembered, least recently written first out."""

PRINCIPAL_HEADER = "principal"
"""The header with the caller's principal, for a service with authorization."""


STREAM = ("stream", b"1")
"""The header of a request that asks for partial replies."""


class KafkaTransport:
    """One open connection to the service. Belongs to one event loop."""

    def __init__(
        self,
        bootstrap: str,
        topic_prefix: str,
        timeout: float,
        principal: str | None = None,
        headers: HeadersOf | None = None,
        security: KafkaSecurity | None = None,
        boundary: BoundaryFields = USER_BOUNDARY,
    ) -> None:
        """`boundary`: the boundary fields of the service's scopes, which form the keys of records."""
        self._boundary = boundary
        self._bootstrap = bootstrap.replace("kafka://", "")
        self._prefix = topic_prefix
        self._timeout = timeout
        self._principal = principal
        self._headers_of = headers or dict[str, str]
        self._security = security
        self._replies = PendingReplies()
        self._connection: Connection | None = None
        self._exit = AsyncExitStack()
        self._last_turn: OrderedDict[str, int] = OrderedDict()

    async def open(self) -> None:
        """Connect. Raises `MemoryUnreachable`."""
        self._replies = PendingReplies()
        opening = open_connection(
            self._bootstrap, self._security, self._prefix + REPLIES_TOPIC, self._replies.deliver, self._timeout
        )
        with _unreachable("is the service up (`modestream up`)?"):
            self._connection = await self._exit.enter_async_context(opening)

    async def close(self) -> None:
        """Fail pending requests with `MemoryClosed`, flush written records, and disconnect."""
        self._connection = None
        self._replies.close()
        await self._exit.aclose()

    async def resolve_read_after(self, user_id: str, read_after: ReadAfter) -> int | None:
        """Return the offset to read after in the user's partition; for `OWN_WRITES`, the last turn sent here.

        Raises `MemoryServiceError` with code `invalid_value` for the partition of other users.
        """
        if read_after == OWN_WRITES:
            return self._last_turn.get(self._boundary.key_of(user_id))
        if not isinstance(read_after, str):
            return read_after
        place = Written.parse(read_after)
        if place.partition != await self.partition_of(user_id):
            raise invalid_read_after(f"{read_after!r} is not in the partition of this user")
        return place.offset

    async def partition_of(self, user_id: str) -> int:
        """Return the partition of the user's records."""
        key = self._boundary.key_of(user_id).encode()
        with _unreachable("is the broker up, and does the topic exist?"):
            return await self._connected().partition_of(self._prefix + TURNS_TOPIC, key)

    async def write(self, topic: str, record: Json, *, principal: str | None = None, timeout: float | None) -> Written:
        """Send a record without a reply address and wait for Kafka's acknowledgement."""
        connection, limit = self._connected(), self._limit(timeout)
        try:
            async with asyncio.timeout(limit):
                return await self._send(connection, topic, record, self._own_headers(principal))
        except TimeoutError:
            raise self._unacknowledged(topic, limit) from None

    async def request(
        self,
        topic: str,
        record: Json,
        *,
        principal: str | None = None,
        timeout: float | None,
        deadline: bool = True,
        on_partial: OnPartial | None = None,
    ) -> tuple[Reply, Written]:
        """Send a record and wait for its reply; with `deadline` the service drops it after the timeout.

        `on_partial` requests partial replies and receives them.
        """
        connection, limit = self._connected(), self._limit(timeout)
        with self._replies.expect(on_partial) as pending:
            written = None
            headers = [
                *self._own_headers(principal),
                ("reply_to", connection.reply_topic.encode()),
                ("reply_partition", str(connection.reply_partition).encode()),
                (CORRELATION_ID, pending.correlation_id),
                *([] if on_partial is None else [STREAM]),
            ]
            if deadline:
                headers.append(("deadline", str(round(connection.clock.now_ms() + limit * 1000)).encode()))
            try:
                async with asyncio.timeout(limit):
                    written = await self._send(connection, topic, record, headers)
                    reply = await pending.reply
            except TimeoutError:
                if written is None:
                    raise self._unacknowledged(topic, limit) from None
                raise MemoryTimeout(
                    f"no reply within {limit:g} s to the record at offset {written.offset} of {self._prefix}{topic}, "
                    f"partition {written.partition}: is a worker running, and how far is it behind? "
                    "Kafka has the record; a retry is safe."
                ) from None
        return reply_of(reply), written

    async def _send(
        self, connection: Connection, topic: str, record: Json, headers: list[tuple[str, bytes]]
    ) -> Written:
        boundary = self._boundary.key(record["scope"])
        is_turn = topic == TURNS_TOPIC
        if is_turn:
            record = with_identity(record, connection.clock.now_ms())

        def note_offset(offset: int) -> None:
            if is_turn:
                self._last_turn[boundary] = max(offset, self._last_turn.pop(boundary, -1))
                if len(self._last_turn) > MAX_LAST_TURNS:
                    self._last_turn.popitem(last=False)

        # Not orjson, as a library's dependency; integers beyond 64 bits are sent, and NaN is an error.
        encoded = json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
        with _unreachable("is the broker up, and does the topic exist?"):
            return Written(
                *await connection.send(self._prefix + topic, boundary.encode(), encoded, headers, note_offset)
            )

    def _own_headers(self, principal: str | None) -> list[tuple[str, bytes]]:
        caller = self._principal if principal is None else principal
        named = {**self._headers_of(), **({} if caller is None else {PRINCIPAL_HEADER: caller})}
        return [(name, value.encode()) for name, value in named.items()]

    def _connected(self) -> Connection:
        if self._connection is None:
            raise MemoryClosed("the client is not open: use it inside `async with MemoryClient(…)`")
        return self._connection

    def _limit(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else timeout

    def _unacknowledged(self, topic: str, limit: float) -> MemoryTimeout:
        return MemoryTimeout(
            f"Kafka at {self._bootstrap} did not acknowledge the record on {self._prefix}{topic} within {limit:g} s: "
            "is the broker up, and does the topic exist? The record may still be written.",
            is_written=False,
        )


@contextmanager
def _unreachable(check: str) -> Iterator[None]:
    try:
        yield
    except MemoryUnreachable as problem:
        raise MemoryUnreachable(f"{problem}: {check}") from problem


class MemoryClient(MemoryCalls):
    """A connection to the memory service, used as `async with MemoryClient(…) as memory`.

    Every method takes a `timeout` in seconds and a `principal` for that call, and raises a `MemoryClientError`:
    `MemoryServiceError` for the service's own errors, `MemoryTimeout`, `MemoryUnreachable`, `MemoryClosed`.

    Parameters
    ----------
    bootstrap
        Kafka's address, such as `127.0.0.1:9092` or `kafka://127.0.0.1:9092`; several are separated by commas.
    user_id
        The default user of calls.
    project_id
        The default project of calls.
    topic_prefix
        The prefix of the service's topic names. A deployment that replaces it has another one.
    timeout
        Limit of a call in seconds, opening and closing included.
    principal
        The caller, for a service with an authorization file; every call can name another.
    scope
        Values of further fields of the service's scope model, for every call.
    boundary
        The boundary fields of the service's scope model, in declared order. With others than `user_id` a user is their
        values, `{"organization_id": "acme", "user_id": "u1"}`, or their canonical string, `acme/u1`.
    headers
        Called for each record; returns further headers of it, such as `traceparent`.
    security
        TLS and SASL; default: neither.
    outbox
        A folder in which turns wait while the service is away (`modestream_client.outbox`); default: none, and
        `remember` raises.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        user_id: UserId | None = None,
        project_id: str = "default",
        topic_prefix: str = "memory.",
        timeout: float = DEFAULT_TIMEOUT_S,
        principal: str | None = None,
        scope: Mapping[str, str] | None = None,
        boundary: Sequence[str] = USER_BOUNDARY,
        headers: HeadersOf | None = None,
        security: KafkaSecurity | None = None,
        outbox: str | PathLike[str] | None = None,
    ) -> None:
        fields = BoundaryFields(boundary)
        self._kafka = KafkaTransport(bootstrap, topic_prefix, timeout, principal, headers, security, fields)
        transport = with_outbox(self._kafka, outbox, timeout, fields)
        super().__init__(transport, user_id=user_id, project_id=project_id, scope=scope, boundary=fields)

    async def request(
        self,
        topic: str,
        value: Json,
        *,
        principal: str | None = None,
        timeout: float | None = None,
        deadline: bool = True,
    ) -> tuple[Reply, Written]:
        """Send any record with a `scope` and wait for its reply; return that and the record's place.

        `topic` has no prefix, such as `consolidate`. With `deadline` the service drops the request after the timeout;
        a turn is stored all the same, without a reply.
        """
        return await self._kafka.request(topic, value, principal=principal, timeout=timeout, deadline=deadline)

    async def partition_of(self, user_id: UserId) -> int:
        """Return the partition of the user's records, the same on every topic."""
        return await self._kafka.partition_of(self._users(user_id)[0])


class SyncMemoryClient(SyncMemoryCalls):
    """`MemoryClient` without `await`, used as `with SyncMemoryClient(…) as memory`, from any number of threads.

    `headers` is called in the client's own thread, with the context variables of the caller.
    """

    @constructed_as(MemoryClient)
    def __init__(self) -> None: ...

    request = without_await(MemoryClient.request)
    partition_of = without_await(MemoryClient.partition_of)
