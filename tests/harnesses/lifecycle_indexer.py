"""The indexer on its topic, driven event by event: vectors are begun in order, written in batches, and told.

Enters: what was remembered. Leaves: what became of the vectors, at the end of a list. Set back, it begins anew what was
not acknowledged; killed, it has written a batch and published no event.
"""

import asyncio
from typing import Any

from agents.embedding.embed import Embed, EncodedMemory
from schemas.failures import Unavailable
from schemas.internal.events import Embedded


class Topic:
    """The events of one topic, and where its reader is."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self.next = 0

    @property
    def waiting(self) -> bool:
        """Whether there are events that were not read."""
        return self.next < len(self.events)

    def back(self, events: int) -> None:
        """Set the reader back."""
        self.next = max(0, self.next - events)


class LifecycleIndexer:
    """The indexer over one partition. `remembered` is its topic; `encoded` are the vectors that it has not written."""

    def __init__(self, embed: Embed, partition: int, loop: asyncio.AbstractEventLoop, told: list[Any]) -> None:
        """Take the parts, and the list that what is told is added to."""
        self.remembered = Topic()
        self.encoded: list[EncodedMemory] = []
        self._embed = embed
        self._partition = partition
        self._loop = loop
        self._told = told

    @property
    def is_busy(self) -> bool:
        """Whether anything is still to be done."""
        return self.remembered.waiting or bool(self.encoded)

    def encode(self) -> None:
        """Make the next vector, if the index or the model can be reached."""
        if self.remembered.waiting:
            event = self.remembered.events[self.remembered.next]
            try:
                encoded = self._loop.run_until_complete(self._embed.encode(event, self._partition))
            except Unavailable:
                return
            self.encoded.append(encoded)
            self.remembered.next += 1

    def write(self, most: int, *, killed: bool = False) -> None:
        """Write a batch, if the index can be reached; killed, no event leaves, and all starts again."""
        batch = self.encoded[:most]
        try:
            said = self._written(batch) if batch else []
        except Unavailable:
            return
        if killed:
            self.redeliver(0)
            return
        del self.encoded[:most]
        self._told += said

    def redeliver(self, events: int) -> None:
        """Set back by what is under way and some events more."""
        self.remembered.back(events + len(self.encoded))
        self.encoded.clear()

    def _written(self, batch: list[EncodedMemory]) -> list[Embedded]:
        return self._loop.run_until_complete(self._embed.write(batch))
