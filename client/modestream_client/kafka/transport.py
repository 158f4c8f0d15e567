"""Request and reply over Kafka: send a record, wait for its reply.

A request is a JSON object with a scope; it ends with its reply or one of the client's errors, within the timeout. Each
record is keyed by its boundary. The offsets of written turns are remembered by boundary, also after a timeout, so that
a query can read after them.
"""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial

from modestream_client.answers import Json, Reply, reply_of
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.failures import MemoryClosed, MemoryTimeout, MemoryUnreachable
from modestream_client.kafka.connection import REPLIES_TOPIC, Connection, open_connection
from modestream_client.kafka.replies import CORRELATION_ID, PendingReplies, PendingReply
from modestream_client.kafka.security import KafkaSecurity
from modestream_client.records import TURNS_TOPIC, Written, invalid_read_after, with_identity
from modestream_client.transport import OWN_WRITES, HeadersOf, ReadAfter

MAX_LAST_TURNS = 100_000
"""Boundaries whose last turn is remembered; the one that was written to longest ago is forgotten first."""

PRINCIPAL_HEADER = "principal"
"""The header with the caller's principal, for a service with authorization."""


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
        """`boundary` are the boundary fields of the service's scopes, of which keys are made."""
        self._boundary = boundary
        self._bootstrap = bootstrap
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
        with _unreachable("is the service up (`python -m streams up`)?"):
            self._connection = await self._exit.enter_async_context(opening)

    async def close(self) -> None:
        """Fail pending requests with `MemoryClosed`, flush written records, and disconnect."""
        self._connection = None
        self._replies.close()
        await self._exit.aclose()

    async def resolve_read_after(self, user_id: str, read_after: ReadAfter) -> int | None:
        """Return the offset to read after in the user's partition; for `OWN_WRITES` that of the last turn sent here.

        Raises `MemoryServiceError` with code `invalid_value` for the partition of other users.
        """
        if read_after == OWN_WRITES:
            return self._last_turn.get(self._boundary.key_of(user_id))
        return await self._offset_in(user_id, read_after) if isinstance(read_after, str) else read_after

    async def partition_of(self, user_id: str) -> int:
        """Return the partition of the user's records."""
        key = self._boundary.key_of(user_id).encode()
        with _unreachable("is the broker up, and does the topic exist?"):
            return await self._connected().partition_of(self._prefix + TURNS_TOPIC, key)

    async def _offset_in(self, user_id: str, read_after: str) -> int:
        place = Written.parse(read_after)
        if place.partition != await self.partition_of(user_id):
            raise invalid_read_after(f"{read_after!r} is not in the partition of this user")
        return place.offset

    async def write(self, topic: str, record: Json, *, principal: str | None = None, timeout: float | None) -> Written:
        """Send a record without a reply address and wait for Kafka's acknowledgement."""
        connection, limit = self._connected(), self._limit(timeout)
        try:
            async with asyncio.timeout(limit):
                return await self._send(connection, topic, record, self._own_headers(principal))
        except TimeoutError:
            raise self._unacknowledged(topic, limit) from None

    async def request(
        self, topic: str, record: Json, *, principal: str | None = None, timeout: float | None, deadline: bool
    ) -> tuple[Reply, Written]:
        """Send a record and wait for its reply; with `deadline` the service drops it after the timeout."""
        connection, limit = self._connected(), self._limit(timeout)
        with self._replies.expect() as pending:
            written = None
            headers = [*self._own_headers(principal), *_headers(connection, pending, limit if deadline else None)]
            try:
                async with asyncio.timeout(limit):
                    written = await self._send(connection, topic, record, headers)
                    reply = await pending.reply
            except TimeoutError:
                raise self._unanswered(topic, written, limit) from None
        return reply_of(reply), written

    async def _send(
        self, connection: Connection, topic: str, record: Json, headers: list[tuple[str, bytes]]
    ) -> Written:
        boundary = self._boundary.key(record["scope"])
        on_offset = _ignore
        if topic == TURNS_TOPIC:
            on_offset = partial(self._record_turn, boundary)
            record = with_identity(record, connection.clock.now_ms())
        # Not orjson, as a library's dependency; integers beyond 64 bits are sent, and NaN is an error.
        encoded = json.dumps(record, ensure_ascii=False, allow_nan=False).encode()
        with _unreachable("is the broker up, and does the topic exist?"):
            return Written(*await connection.send(self._prefix + topic, boundary.encode(), encoded, headers, on_offset))

    def _own_headers(self, principal: str | None) -> list[tuple[str, bytes]]:
        caller = self._principal if principal is None else principal
        named = {**self._headers_of(), **({} if caller is None else {PRINCIPAL_HEADER: caller})}
        return [(name, value.encode()) for name, value in named.items()]

    def _record_turn(self, boundary: str, offset: int) -> None:
        self._last_turn[boundary] = max(offset, self._last_turn.pop(boundary, -1))
        if len(self._last_turn) > MAX_LAST_TURNS:
            self._last_turn.popitem(last=False)

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

    def _unanswered(self, topic: str, written: Written | None, limit: float) -> MemoryTimeout:
        if written is None:
            return self._unacknowledged(topic, limit)
        return MemoryTimeout(
            f"no reply within {limit:g} s to the record at offset {written.offset} of {self._prefix}{topic}, "
            f"partition {written.partition}: is a worker running, and how far is it behind? "
            "Kafka has the record; a retry is safe."
        )


def _ignore(_: int) -> None:
    """`read_after` names turns only."""


def _headers(connection: Connection, pending: PendingReply, limit: float | None) -> list[tuple[str, bytes]]:
    headers = [
        ("reply_to", connection.reply_topic.encode()),
        ("reply_partition", str(connection.reply_partition).encode()),
        (CORRELATION_ID, pending.correlation_id),
    ]
    if limit is not None:
        headers.append(("deadline", str(round(connection.clock.now_ms() + limit * 1000)).encode()))
    return headers


@contextmanager
def _unreachable(check: str) -> Iterator[None]:
    try:
        yield
    except MemoryUnreachable as problem:
        raise MemoryUnreachable(f"{problem}: {check}") from problem
