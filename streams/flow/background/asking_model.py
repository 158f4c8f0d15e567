"""Ask a language model about memories in the background: fresh ones at once, the backlog at a limited rate.

The queue is the status `pending` on the records, so that nothing is lost with this process. The number of concurrent
calls is limited; while the model is unavailable one call at a time probes it. Answers leave as `understood.v1`; a
duplicate answer changes nothing.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator
from functools import partial

import structlog

from agents.understanding.understand import Understand
from schemas.failures import ModelMissing, Unavailable
from schemas.state.memories import Memory
from streams.flow.requests.channel import event_out
from streams.flow.steps.refresh import understood_turn
from streams.flow.worker_context import WorkerContext

log = structlog.get_logger()

MemoryKey = tuple[int, str]
"""A partition and a memory id."""

MAX_FRESH = 1000
"""Fresh turns in the queue; further ones are found by their records."""

MAX_ANSWERED = 10_000
"""Maximum answers cached until their records have them: a few seconds' worth."""

PENDING_POLL_INTERVAL_S = 1.0
"""Between two scans for pending records."""


class UnderstandingQueue:
    """Runs until it is cancelled. `ask` may be called at any time."""

    def __init__(
        self,
        understand_at: Callable[[int], Understand],
        here: Callable[[], Collection[int]],
        ctx: WorkerContext,
        *,
        at_once: int,
        backlog_per_second: float,
        busy: Callable[[], bool] = lambda: False,
    ) -> None:
        """`here` returns the assigned partitions; at most `at_once` calls are concurrent.

        While the worker is `busy` with new turns, the backlog waits.
        """
        self._understand_at = understand_at
        self._here = here
        self._ctx = ctx
        self._pause_s = 1 / backlog_per_second
        self._busy = busy
        self._slots = asyncio.Semaphore(at_once)
        self._fresh: deque[MemoryKey] = deque()
        self._wake = asyncio.Event()
        self._running: set[MemoryKey] = set()
        self._answered: OrderedDict[tuple[MemoryKey, int], None] = OrderedDict()
        self._calls: set[asyncio.Task[None]] = set()

    def ask(self, partition: int, memory: Memory) -> None:
        """Queue a memory ahead of the backlog."""
        if len(self._fresh) < MAX_FRESH:
            self._fresh.append((partition, memory.memory_id))
            self._wake.set()

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._ask_fresh())
                group.create_task(self._ask_backlog())
        finally:
            for call in list(self._calls):
                call.cancel()

    async def _ask_fresh(self) -> None:
        while True:
            while not self._fresh:
                self._wake.clear()
                await self._wake.wait()
            await self._start(self._fresh.popleft())

    async def _ask_backlog(self) -> None:
        """Scan for pending records, again and again."""
        while True:
            for due in self._pending():
                while self._busy():  # noqa: ASYNC110 - lag is Kafka's, and nothing tells of it
                    await asyncio.sleep(self._pause_s)
                started = await self._start(due)
                await asyncio.sleep(self._pause_s if started else 0)
            await asyncio.sleep(PENDING_POLL_INTERVAL_S)

    def _pending(self) -> Iterator[MemoryKey]:
        for partition in list(self._here()):
            try:
                yield from (
                    (partition, memory_id) for memory_id in self._ctx.stores.words.awaiting_understanding(partition)
                )
            except (KeyError, Unavailable):
                continue  # The partition has just left.

    async def _start(self, due: MemoryKey) -> bool:
        """Begin a call when the model is available and the limit allows it; False if it is running or answered."""
        understand = self._understand_at(due[0])
        if self._is_asked(due) or not understand.is_on:
            return False
        await understand.until_available()
        await self._slots.acquire()
        # The same memory may have waited as a fresh one and in the backlog.
        if self._is_asked(due):
            self._slots.release()
            return False
        self._running.add(due)
        call = asyncio.create_task(self._call(due))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        return True

    async def _call(self, due: MemoryKey) -> None:
        try:
            await self._ask(*due)
        except (Unavailable, ModelMissing) as problem:
            # Its record stays pending: the backlog retries it.
            log.info("language model unavailable, memory stays pending", problem=str(problem))
        except Exception:
            log.exception("understanding a memory failed", partition=due[0])
        finally:
            self._running.discard(due)
            self._slots.release()

    async def _ask(self, partition: int, memory_id: str) -> None:
        memory = self._memory(partition, memory_id)
        understand = self._understand_at(partition)
        # Asked now, not when it was queued: it may have become private.
        if memory is None or memory.reading.status != "pending" or not understand.may_ask(memory):
            return
        if any(resource.status == "pending" for resource in memory.resources):
            # It is asked about with its files, once: as soon as they are read it is found by its record.
            return
        ask = partial(understand.by_model, memory)
        event = await understood_turn(understand.pipelines, ask, memory, partition, self._ctx)
        if event is None:
            return
        out = event_out(self._ctx.topics.understood, memory.boundary, event)
        await (await self._ctx.publisher.send(out))
        self._answered[(partition, memory_id), memory.latest] = None
        if len(self._answered) > MAX_ANSWERED:
            self._answered.popitem(last=False)

    def _is_asked(self, due: MemoryKey) -> bool:
        """True if there is nothing to ask: no record, a running call, or an answer that is not on the record yet."""
        memory = self._memory(*due)
        return due in self._running or memory is None or (due, memory.latest) in self._answered

    def _memory(self, partition: int, memory_id: str) -> Memory | None:
        try:
            return self._ctx.stores.memories.get(partition, memory_id)
        except KeyError:
            return None
