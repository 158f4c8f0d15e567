"""The table `interactions` over a dict."""

import asyncio
from collections.abc import Awaitable

from schemas.state.interaction import InteractionCounts


class FakeInteractions:
    """Implements `streams.flow.stores.tables.InteractionStore` in memory, as JSON; `writes` counts the writes.

    While `held` is set writes are not safe yet.
    """

    def __init__(self) -> None:
        self.held = False
        self._unsafe = 0
        self.writes = 0
        self.stored: dict[int, str] = {}

    def get(self, partition: int) -> InteractionCounts:
        """Return the counts of a partition."""
        return InteractionCounts.model_validate_json(self.stored.get(partition, "{}"))

    def put(self, partition: int, counts: InteractionCounts) -> None:
        """Replace the counts of a partition."""
        self.writes += 1
        self._unsafe += 1
        self.stored[partition] = counts.model_dump_json()

    def pending_writes(self) -> list[Awaitable[None]]:
        """Return awaitables of the writes since the last call."""
        written, self._unsafe = self._unsafe, 0
        return [self._safe() for _ in range(written)]

    async def _safe(self) -> None:
        while self.held:
            await asyncio.sleep(0)
