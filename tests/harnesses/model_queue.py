"""A worker with an `UnderstandingQueue`, and ways to wait for it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from agents.memory.write_memory import finish
from schemas.state.memories import Memory
from streams.flow.background.asking_model import UnderstandingQueue
from tests.harnesses.worker import HERE, WorkerHarness

AT_ONCE = 3
"""Concurrent requests of the queue."""


class ModelQueueHarness(WorkerHarness):
    """A worker with a language model; `here` are its assigned partitions."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, asks_model=True)
        self.here = {HERE}
        self.busy = False
        self.declare("code", "tiny32")

    @asynccontextmanager
    async def asking(self, per_second: float = 1e6) -> AsyncIterator[UnderstandingQueue]:
        asking = UnderstandingQueue(
            lambda _: self.understand,
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

    def say_pending(self, number: int) -> list[Memory]:
        """Remember turns whose understanding is pending."""
        return [self.say(f"crate {offset} [[code]]", offset) for offset in range(number)]

    def apply_understood(self) -> None:
        for event in self.understood_events():
            finish(self.remember.understood(event))

    def understood_texts(self) -> list[str]:
        texts = {memory.memory_id: memory.text for memory in self.memories.all()}
        return sorted(texts[event.memory_id] for event in self.understood_events())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def yield_to_loop(number: int = 300) -> None:
    """Yield to the event loop until tasks that need no time are done."""
    for _ in range(number):
        await asyncio.sleep(0)
