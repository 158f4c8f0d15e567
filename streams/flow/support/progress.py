"""The applied offset of turns by partition: `read_after` waits for it."""

import asyncio
from collections import defaultdict


class AppliedOffsets:
    """The next offset of the turns topic that is not yet applied, by partition."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {}
        self._changed: dict[int, asyncio.Event] = defaultdict(asyncio.Event)

    def advance(self, partition: int, next_offset: int) -> None:
        """Record that everything before `next_offset` is applied and visible."""
        self._next[partition] = max(next_offset, self._next.get(partition, 0))
        self._changed.pop(partition, asyncio.Event()).set()

    def next_offset(self, partition: int) -> int | None:
        """Return the next offset that is not applied; None for a partition of another worker."""
        return self._next.get(partition)

    def is_applied(self, partition: int, offset: int) -> bool:
        """True if the offset is applied."""
        return self._next.get(partition, -1) > offset

    async def reached(self, partition: int, offset: int, within: float) -> bool:
        """Wait at most `within` seconds; return True if `offset` is applied."""
        try:
            async with asyncio.timeout(within):
                while not self.is_applied(partition, offset):
                    await self._changed[partition].wait()
        except TimeoutError:
            return False
        return True
