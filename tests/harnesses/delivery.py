"""A delivery over a short stream of events that finish when a test says so."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from schemas.messages.records import Record
from streams.runtime.delivery import Delivery
from tests.builders.turns import record


class Event:
    """One event of a stream; `settled` gets the offsets that were acknowledged, in order."""

    def __init__(self, offset: int, settled: list[int]) -> None:
        self.record = record(offset=offset)
        self._settled = settled

    def settle(self) -> None:
        self._settled.append(self.record.offset)

    def leave(self) -> None:
        """Do nothing: it is not acknowledged."""


class Run:
    """A delivery over `events` events that finish when the test says so."""

    def __init__(self, events: int, window: int = 100, *, endless: bool = False, pause_s: float = 0) -> None:
        self.begun: list[int] = []
        self.settled: list[int] = []
        self.batches: list[list[int]] = []
        self.finishing = [asyncio.get_running_loop().create_future() for _ in range(events)]
        self.before_begin: Callable[[int], Awaitable[None]] = nothing
        self.before_settle: Callable[[list[int]], Awaitable[None]] = nothing
        self._endless = endless
        self.delivery: Delivery[int] = Delivery(self._begin, self._settle, window=window, pause_s=pause_s)
        self.task = asyncio.create_task(self.delivery.run(self._stream(events)))

    async def _stream(self, events: int) -> AsyncIterator[Event]:
        for offset in range(events):
            yield Event(offset, self.settled)
        if self._endless:
            await asyncio.Event().wait()

    async def _begin(self, taken: Record) -> Awaitable[int]:
        await self.before_begin(taken.offset)
        self.begun.append(taken.offset)
        return self.finishing[taken.offset]

    async def _settle(self, finished: Sequence[int]) -> None:
        await self.before_settle(list(finished))
        self.batches.append(list(finished))

    async def finish(self, *offsets: int) -> None:
        """Finish events and run all tasks until they block."""
        for offset in offsets:
            self.finishing[offset].set_result(offset)
        await quiet()

    async def until_settled(self, count: int) -> None:
        """Wait for that many acknowledgements."""
        async with asyncio.timeout(10):
            while len(self.settled) < count:
                await asyncio.sleep(0.01)

    async def failure(self) -> BaseException:
        with pytest.raises(ExceptionGroup) as ended:
            await self.task
        return ended.value.exceptions[0]


async def nothing(_: object) -> None:
    """Do nothing."""


async def quiet() -> None:
    """Run all tasks until they block."""
    for _ in range(60):
        await asyncio.sleep(0)
