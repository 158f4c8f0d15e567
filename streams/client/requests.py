"""Sends records and waits for their replies: what every call of the client has in common.

Records of the contract enter, as JSON objects with a scope; their replies leave, or one of the client's errors, always
within the timeout. Each record has the key of its boundary. The offsets of written turns are kept by boundary, also of
those whose sender has given up waiting, so that a question can name them.
"""

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import NamedTuple

from schemas.failures import Unavailable
from schemas.scopes import boundary_key
from streams.adapters.kafka.client_connection import Connection, open_connection
from streams.client.answers import Json, Reply, reply_of
from streams.client.failures import MemoryClosed, MemoryTimeout, MemoryUnreachable
from streams.client.replies import CORRELATION_ID, PendingReplies, PendingReply

TURNS_TOPIC = "turns"
"""The topic, without its prefix, whose offsets `read_after` names."""

PRINCIPAL_HEADER = "principal"
"""The header that says who asks, where the service asks for that."""


class Written(NamedTuple):
    """Where Kafka has put a record."""

    partition: int
    offset: int


class RequestReplyClient:
    """One open connection to the service. Belongs to one event loop."""

    def __init__(self, bootstrap: str, topic_prefix: str, timeout: float, principal: str | None = None) -> None:
        self._bootstrap = bootstrap
        self._prefix = topic_prefix
        self._timeout = timeout
        self._signed = [] if principal is None else [(PRINCIPAL_HEADER, principal.encode())]
        self._replies = PendingReplies()
        self._connection: Connection | None = None
        self._exit = AsyncExitStack()
        self._last_turn: dict[str, int] = {}

    async def open(self) -> None:
        """Connect. Raises `MemoryUnreachable`."""
        self._replies = PendingReplies()
        opening = open_connection(self._bootstrap, f"{self._prefix}replies", self._replies.deliver, self._timeout)
        with _unreachable("is the service up (`python -m streams up`)?"):
            self._connection = await self._exit.enter_async_context(opening)

    async def close(self) -> None:
        """Fail what still waits with `MemoryClosed`, let Kafka acknowledge what was handed over, and disconnect."""
        self._connection = None
        self._replies.close()
        await self._exit.aclose()

    def last_turn(self, user_id: str) -> int | None:
        """The highest offset of a turn that was written here for this user."""
        return self._last_turn.get(boundary_key([user_id]))

    async def write(self, topic: str, value: Json, *, timeout: float | None) -> Written:
        """Send a record that wants no reply, and wait for Kafka's acknowledgement."""
        connection, within = self._open(), self._within(timeout)
        try:
            async with asyncio.timeout(within):
                return await self._send(connection, topic, value, self._signed)
        except TimeoutError:
            raise self._unacknowledged(topic, within) from None

    async def ask(self, topic: str, value: Json, *, timeout: float | None, deadline: bool) -> tuple[Reply, Written]:
        """Send a record and wait for its reply; `deadline` tells the service until when it is wanted."""
        connection, within = self._open(), self._within(timeout)
        with self._replies.expect() as awaited:
            written = None
            headers = [*self._signed, *_headers(connection, awaited, within if deadline else None)]
            try:
                async with asyncio.timeout(within):
                    written = await self._send(connection, topic, value, headers)
                    reply = await awaited.reply
            except TimeoutError:
                raise self._unanswered(topic, written, within) from None
        return reply_of(reply), written

    async def _send(self, connection: Connection, topic: str, value: Json, headers: list[tuple[str, bytes]]) -> Written:
        boundary = boundary_key([value["scope"]["user_id"]])
        note = partial(self._note, boundary) if topic == TURNS_TOPIC else _forget
        encoded = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
        with _unreachable("is the broker up, and does the topic exist?"):
            return Written(*await connection.send(self._prefix + topic, boundary.encode(), encoded, headers, note))

    def _note(self, boundary: str, offset: int) -> None:
        self._last_turn[boundary] = max(offset, self._last_turn.get(boundary, -1))

    def _open(self) -> Connection:
        if self._connection is None:
            raise MemoryClosed("the client is not open: call it inside `async with MemoryClient(…)`")
        return self._connection

    def _within(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else timeout

    def _unacknowledged(self, topic: str, within: float) -> MemoryTimeout:
        return MemoryTimeout(
            f"Kafka at {self._bootstrap} did not acknowledge the record on {self._prefix}{topic} within {within:g} s: "
            "is the broker up, and does the topic exist? The record may still be written."
        )

    def _unanswered(self, topic: str, written: Written | None, within: float) -> MemoryTimeout:
        if written is None:
            return self._unacknowledged(topic, within)
        return MemoryTimeout(
            f"no reply within {within:g} s to the record at offset {written.offset} of {self._prefix}{topic}, "
            f"partition {written.partition}: is a worker running, and how far is it behind? "
            "Kafka has the record; sending it again is safe."
        )


def _forget(_: int) -> None:
    """Only turns are read after."""


def _headers(connection: Connection, awaited: PendingReply, within: float | None) -> list[tuple[str, bytes]]:
    headers = [
        ("reply_to", connection.reply_topic.encode()),
        ("reply_partition", str(connection.reply_partition).encode()),
        (CORRELATION_ID, awaited.correlation_id),
    ]
    if within is not None:
        headers.append(("deadline", str(round((time.time() + within) * 1000)).encode()))
    return headers


@contextmanager
def _unreachable(check: str) -> Iterator[None]:
    try:
        yield
    except Unavailable as problem:
        raise MemoryUnreachable(f"{problem}: {check}") from problem
