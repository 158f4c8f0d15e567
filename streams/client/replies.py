"""Finds the request that a reply belongs to.

Headers and values of records on the shared reply topic enter; each waiting request gets the value of the first reply
with its correlation id. Replies of other clients, second replies and late ones are ignored.
"""

import asyncio
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from streams.client.failures import MemoryClosed

CORRELATION_ID = "correlation_id"
"""The header that ties a reply to its request (CONTRACT §2)."""

ReplyHeaders = Iterable[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class PendingReply:
    """One request that waits: what to send as its correlation id, and where its reply will be."""

    correlation_id: bytes
    reply: asyncio.Future[bytes]


class PendingReplies:
    """The requests that wait for a reply. Belongs to one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[bytes, asyncio.Future[bytes]] = {}
        self._closed = False

    def __len__(self) -> int:
        """How many requests wait."""
        return len(self._waiting)

    @contextmanager
    def expect(self) -> Iterator[PendingReply]:
        """Wait for one reply while the block runs; afterwards it is ignored. Raises `MemoryClosed` once closed."""
        if self._closed:
            raise MemoryClosed("the client was closed")
        # Text, so that an operator can read it in kcat; random, because the topic is shared with other clients.
        awaited = PendingReply(secrets.token_hex(16).encode(), asyncio.get_running_loop().create_future())
        self._waiting[awaited.correlation_id] = awaited.reply
        try:
            yield awaited
        finally:
            self._waiting.pop(awaited.correlation_id, None)
            # Also where it is done: asyncio then does not complain of a failure that nobody has looked at.
            awaited.reply.cancel()

    def deliver(self, headers: ReplyHeaders, value: bytes | None) -> None:
        """Give a reply to the request that waits for it, if any does."""
        reply = self._waiting.pop(dict(headers).get(CORRELATION_ID, b""), None)
        if reply is not None and not reply.done():
            reply.set_result(value or b"")

    def close(self) -> None:
        """End every waiting request with `MemoryClosed`."""
        self._closed = True
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(MemoryClosed("the client was closed while this request waited for its reply"))
