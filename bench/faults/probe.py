"""Questions of another user at a steady rate: what a fault costs users that have nothing to do with it."""

import asyncio
import time
from dataclasses import dataclass, field
from functools import partial

from modestream_client.calls import MemoryCalls

from bench.faults.load import ATTEMPT_S, patiently

INTERVAL_S = 1.0
MAX_UNDER_WAY = 8
"""Questions without an answer; no further one is asked, as of a caller with a limit of its own."""

MEMORIES = 10
MIN_DURING_S = 8.0
"""Eight questions at least, also where a fault is over at once."""


@dataclass
class Probe:
    """One user's questions, sent whatever the answers of earlier ones take.

    A question without an answer is asked again, and its time runs on.
    """

    client: MemoryCalls
    user_id: str
    sent: list[tuple[float, asyncio.Task[float]]] = field(default_factory=list)
    """When each was sent, and the milliseconds until its answer."""
    _ends: asyncio.Event = field(default_factory=asyncio.Event)

    async def prepare(self) -> None:
        """Give the user memories, and warm up."""
        for number in range(MEMORIES):
            text = f"The lantern {number} is on the shelf."
            await patiently(partial(self.client.remember, text, user_id=self.user_id))
        for _ in range(MEMORIES):
            await self._asked_ms()

    async def run(self) -> None:
        """Ask until `end` is called; return when all are answered."""
        began, number, gate = time.perf_counter(), 0, asyncio.Semaphore(MAX_UNDER_WAY)
        async with asyncio.TaskGroup() as group:
            while not self._ends.is_set():
                await asyncio.sleep(max(0.0, began + number * INTERVAL_S - time.perf_counter()))
                await gate.acquire()
                task = group.create_task(self._asked_ms())
                task.add_done_callback(lambda _: gate.release())
                self.sent.append((time.perf_counter(), task))
                number += 1

    def end(self) -> None:
        """Let `run` end."""
        self._ends.set()

    def p95_ms(self, since: float, until: float) -> float:
        """Return p95 of the questions that were sent in this time; all must be answered."""
        took = sorted(task.result() for sent_at, task in self.sent if since <= sent_at < until)
        return took[min(len(took) - 1, int(0.95 * len(took)))]

    async def _asked_ms(self) -> float:
        began = time.perf_counter()
        await patiently(
            lambda: self.client.retrieve("which lantern?", users=self.user_id, read_after=None, timeout=ATTEMPT_S)
        )
        return (time.perf_counter() - began) * 1000
