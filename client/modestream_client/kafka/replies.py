"""Correlate replies with requests.

Each pending request gets the value of the first record on the reply topic with its correlation id. Replies of other
clients, duplicates and late ones are ignored.
"""

import asyncio
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from modestream_client.failures import MemoryClosed

CORRELATION_ID = "correlation_id"
"""The header that correlates a reply with its request."""

ReplyHeaders = Iterable[tuple[str, bytes]]


@dataclass(frozen=True, slots=True)
class PendingReply:
    """The correlation id to send, and the future of the reply."""

    correlation_id: bytes
    reply: asyncio.Future[bytes]


class PendingReplies:
    """The pending requests by correlation id. Belongs to one event loop."""

    def __init__(self) -> None:
        self._pending: dict[bytes, asyncio.Future[bytes]] = {}
        self._closed = False

    def __len__(self) -> int:
        """Count the pending requests."""
        return len(self._pending)

    @contextmanager
    def expect(self) -> Iterator[PendingReply]:
        """Accept one reply while the block runs. Raises `MemoryClosed` once closed."""
        if self._closed:
            raise MemoryClosed("the client was closed")
        # Text, so that an operator can read it in kcat; random, as other clients share the topic.
        pending = PendingReply(secrets.token_hex(16).encode(), asyncio.get_running_loop().create_future())
        self._pending[pending.correlation_id] = pending.reply
        try:
            yield pending
        finally:
            self._pending.pop(pending.correlation_id, None)
            # Also when done: asyncio then does not log an exception that was never retrieved.
            pending.reply.cancel()

    def deliver(self, headers: ReplyHeaders, value: bytes | None) -> bool:
        """Resolve the pending request of a reply; return whether there is one."""
        reply = self._pending.pop(dict(headers).get(CORRELATION_ID, b""), None)
        if reply is None or reply.done():
            return False
        reply.set_result(value or b"")
        return True

    def close(self) -> None:
        """Fail every pending request with `MemoryClosed`."""
        self._closed = True
        for reply in self._pending.values():
            if not reply.done():
                reply.set_exception(MemoryClosed("the client was closed before the reply came"))
