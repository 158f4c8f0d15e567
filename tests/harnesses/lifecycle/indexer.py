"""`Embed` on its topic, driven event by event: it encodes in order, writes batches and reports them.

Enters: events of `remembered`. Leaves: reports, appended to a list. If set back, it repeats unacknowledged events;
if killed, it has written a batch and published no report.
"""

import asyncio
from typing import Any

from agents.embedding.embed import Embed
from agents.embedding.held_vectors import EncodedMemory
from schemas.failures import Unavailable
from schemas.internal.events import Embedded


class Topic:
    def __init__(self) -> None:
        self.events: list[Any] = []
        self.next = 0

    @property
    def waiting(self) -> bool:
        return self.next < len(self.events)

    def back(self, events: int) -> None:
        self.next = max(0, self.next - events)


class LifecycleIndexer:
    """`Embed` for one partition. `remembered` is its topic; `encoded` are unwritten vectors."""

    def __init__(self, embed: Embed, partition: int, loop: asyncio.AbstractEventLoop, reports: list[Any]) -> None:
        """`told` is the list that reports are appended to."""
        self.remembered = Topic()
        self.encoded: list[EncodedMemory] = []
        self._embed = embed
        self._partition = partition
        self._loop = loop
        self._reports = reports

    @property
    def is_busy(self) -> bool:
        """True if events or vectors are left."""
        return self.remembered.waiting or bool(self.encoded)

    def encode(self) -> None:
        """Encode the next memory unless the index or the model is unavailable."""
        if self.remembered.waiting:
            event = self.remembered.events[self.remembered.next]
            try:
                encoded = self._loop.run_until_complete(self._embed.encode(event, self._partition))
            except Unavailable:
                return
            self.encoded.append(encoded)
            self.remembered.next += 1

    def write(self, most: int, *, killed: bool = False) -> None:
        """Write a batch unless the index is unavailable; if killed, start again without a report."""
        batch = self.encoded[:most]
        try:
            reports = self._write(batch) if batch else []
        except Unavailable:
            return
        if killed:
            self.redeliver(0)
            return
        del self.encoded[:most]
        self._reports += reports

    def redeliver(self, events: int) -> None:
        """Move back by the unwritten vectors and `events` more."""
        self.remembered.back(events + len(self.encoded))
        self.encoded.clear()

    def _write(self, batch: list[EncodedMemory]) -> list[Embedded]:
        return self._loop.run_until_complete(self._embed.write(batch))
