"""The agent that a `RequestReader` delivers to."""

import asyncio
from dataclasses import dataclass, field

from aiokafka import ConsumerRecord
from faust.types import TP

Read = tuple[TP, int, int | None]
"""Partition, offset, expected offset."""


@dataclass
class Agent:
    """Records what is delivered; blocks while `busy`."""

    read: list[Read] = field(default_factory=list)
    full: set[TP] = field(default_factory=set)
    defects: list[BaseException] = field(default_factory=list)
    busy: bool = False
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def take(self, tp: TP, record: ConsumerRecord[bytes, bytes], expected: int | None) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: not self.busy)
            self.read.append((tp, record.offset, expected))
            self._changed.notify_all()

    async def defect(self, problem: BaseException) -> None:
        """Note what the reader calls a defect."""
        async with self._changed:
            self.defects.append(problem)
            self._changed.notify_all()

    async def has(self, count: int) -> None:
        """Wait for that many records, or a defect."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.read) >= count or self.defects)

    async def rests(self) -> None:
        """Block no longer."""
        async with self._changed:
            self.busy = False
            self._changed.notify_all()
