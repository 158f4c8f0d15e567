"""Replies that wait for their topic beside the requests: limited in number and bytes."""

import asyncio
from collections import Counter

from schemas.messages.records import Outgoing

MAX_WAITING = 1000
MAX_WAITING_BYTES = 64 * 1024 * 1024
"""Limits of the replies that wait. Each waits for five seconds at most."""

Destination = tuple[str, int | None]
"""The topic of a reply, and its partition if the caller has named one."""


class WaitingReplies:
    """The deliveries that wait. Belongs to one event loop."""

    def __init__(self) -> None:
        self._deliveries: set[asyncio.Task[bool]] = set()
        self._destinations: Counter[Destination] = Counter()
        self._bytes = 0

    def waits_for(self, out: Outgoing) -> bool:
        """True if another reply waits for the same destination."""
        return (out.topic, out.partition) in self._destinations

    def add(self, out: Outgoing, delivery: asyncio.Task[bool]) -> bool:
        """Let a delivery wait until it is done; False if there is no room for it."""
        size = len(out.value or b"")
        if len(self._deliveries) >= MAX_WAITING or self._bytes + size > MAX_WAITING_BYTES:
            return False
        self._deliveries.add(delivery)
        self._destinations[out.topic, out.partition] += 1
        self._bytes += size
        delivery.add_done_callback(lambda done: self._remove(out, done))
        return True

    def cancel(self) -> None:
        """Give all up."""
        for delivery in self._deliveries:
            delivery.cancel()

    def _remove(self, out: Outgoing, delivery: asyncio.Task[bool]) -> None:
        destination = out.topic, out.partition
        self._deliveries.discard(delivery)
        self._bytes -= len(out.value or b"")
        self._destinations[destination] -= 1
        if not self._destinations[destination]:
            del self._destinations[destination]
