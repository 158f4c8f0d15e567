"""Long texts are read in processes of their own: a thread would take the interpreter from the event loop.

A request needs the interpreter some hundred times, and waits each time for what a thread does at a stretch: questions
took twice as long during turns of 1.9 MB. Guaranteed: a process ends with the worker, however that dies; a text whose
process died, or could not start, is read in a thread, and the next one in a new process.
"""

import asyncio
import multiprocessing
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import structlog

from agents.rules.items.extracting import ExtractedItem
from schemas.state.memories import Memory
from schemas.state.understanding import Understanding
from streams.adapters.child_processes import LOW_PRIORITY
from streams.flow.text_reading import find_in_text, keep_found, read_in_thread

log = structlog.get_logger()

PROCESSES = 2
"""One is busy with a large text for half a second, one is free for others. Each takes 80 MB, from its first text on."""


class TextProcesses:
    """Implements `streams.flow.text_reading.ReadLongText`."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None

    async def __call__(self, memory: Memory, understanding: Understanding | None = None) -> list[ExtractedItem]:
        """Read a text; starts a process if none is free and there are fewer than `PROCESSES`."""
        if self._pool is None:
            # Spawned: a copy of this process would have its threads' locks in any state.
            self._pool = ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn"), _begin)
        pool = self._pool
        try:
            in_text = await asyncio.get_running_loop().run_in_executor(pool, find_in_text, memory, understanding)
        except (BrokenProcessPool, OSError) as problem:
            log.warning("no process reads this text: it is read in a thread", reason=str(problem))
            if self._pool is pool:
                self._pool = None
            return await read_in_thread(memory, understanding)
        return keep_found(memory, in_text)

    def close(self) -> None:
        """Let the processes end with the text that they read."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


def _begin() -> None:
    """Prepare a process: low priority, no Ctrl-C, and an end with its parent."""

    def end_with_parent() -> None:
        if (parent := multiprocessing.parent_process()) is not None:
            parent.join()
        os._exit(0)

    os.nice(LOW_PRIORITY)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with_parent, daemon=True).start()
