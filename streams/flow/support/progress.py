"""How far the keeper of memories has come in each partition: what `read_after` waits for."""

import asyncio
from collections import defaultdict


class AppliedOffsets:
    """The next offset of the turns topic that is not yet applied, by partition."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {}
        self._changed: dict[int, asyncio.Event] = defaultdict(asyncio.Event)

    def advance(self, partition: int, next_offset: int) -> None:
        """Everything before `next_offset` is applied and can be read."""
        self._next[partition] = max(next_offset, self._next.get(partition, 0))
        self._changed.pop(partition, asyncio.Event()).set()

    def next_offset(self, partition: int) -> int | None:
        """The next offset that is not applied; None for a partition that is not here."""
        return self._next.get(partition)

    async def reached(self, partition: int, offset: int, within: float) -> bool:
        """Whether `offset` is applied, after waiting for it at most `within` seconds."""
        try:
            async with asyncio.timeout(within):
                while self._next.get(partition, -1) <= offset:
                    await self._changed[partition].wait()
        except TimeoutError:
            return False
        return True
