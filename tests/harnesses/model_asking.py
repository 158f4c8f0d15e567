"""A worker that asks a language model of its turns, and how a test waits for it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from schemas.state.memories import Memory
from streams.flow.background.asking_model import UnderstandingQueue
from tests.harnesses.worker import HERE, WorkerHarness

AT_ONCE = 3
"""How many it asks about at the same time."""


class ModelQueueHarness(WorkerHarness):
    """A worker with a language model, and the partitions that are here."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, asks_model=True)
        self.here = {HERE}
        self.busy = False
        self.declare("code", "tiny32")

    @asynccontextmanager
    async def asking(self, per_second: float = 1e6) -> AsyncIterator[UnderstandingQueue]:
        """Ask, until the block ends."""
        asking = UnderstandingQueue(
            lambda _: self.understand,
            self.language,
            lambda: self.here,
            self.ctx,
            at_once=AT_ONCE,
            backlog_per_second=per_second,
            busy=lambda: self.busy,
        )
        running = asyncio.create_task(asking.run())
        try:
            yield asking
            assert not running.done()
        finally:
            running.cancel()

    def tells(self, number: int) -> list[Memory]:
        """Turns that are pending."""
        return [self.tell(f"crate {offset} [[code]]", offset) for offset in range(number)]

    def applied(self) -> None:
        """The keeper gets everything that was understood."""
        for event in self.understood():
            self.remember.understood(event)

    def read(self) -> list[str]:
        """The texts that answers came for, sorted."""
        texts = {memory.memory_id: memory.text for memory in self.memories.all()}
        return sorted(texts[event.memory_id] for event in self.understood())


async def until(condition: Callable[[], bool]) -> None:
    """Wait for something that happens by itself."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def turns_of_the_loop(number: int = 300) -> None:
    """Let everything happen that can happen without time going by."""
    for _ in range(number):
        await asyncio.sleep(0)
