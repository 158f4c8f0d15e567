"""Threads for the arithmetic of maps: one for what a request waits for, one of low priority for long layouts.

Guaranteed: a long layout delays no end of the process: its thread is a daemon's, and ends with its next piece.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from agents.rules.maps.layout import StopCondition
from streams.adapters.priorities import LOW_PRIORITY

Result = TypeVar("Result")


class LayoutThreads:
    """Implements `agents.ports.map_layouts.LayoutThreads`."""

    def __init__(self) -> None:
        self._soon = asyncio.Lock()
        self._long = asyncio.Lock()

    @asynccontextmanager
    async def turn_soon(self) -> AsyncIterator[None]:
        async with self._soon:
            yield

    async def run(self, work: Callable[[], Result]) -> Result:
        return await asyncio.to_thread(work)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        async with self._long:
            yield

    async def run_long(self, work: Callable[[StopCondition], Result]) -> Result:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def run() -> None:
            lower_priority()
            try:
                done = _setter(future, work(future.cancelled))
            except BaseException as problem:
                done = _failing(future, problem)
            # The loop may be closed by now.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(done)

        threading.Thread(target=run, name="map-layout", daemon=True).start()
        return await future


def lower_priority() -> None:
    """Lower the priority of the calling thread, where the system has one for each thread."""
    if hasattr(os, "setpriority") and os.uname().sysname == "Linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOW_PRIORITY)


def _setter(future: asyncio.Future[Result], result: Result) -> Callable[[], None]:
    return lambda: None if future.done() else future.set_result(result)


def _failing(future: asyncio.Future[Result], problem: BaseException) -> Callable[[], None]:
    return lambda: None if future.done() else future.set_exception(problem)
