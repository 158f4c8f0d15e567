"""An event loop in a thread of its own, for work that would block the main loop for milliseconds at a time.

Both share the GIL, which switches threads within 0.5 ms (see the worker's switch interval): that is how long work on
the main loop waits, not until the background loop is done.
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class BackgroundEventLoop:
    """Runs coroutines outside of the caller's loop. The thread starts with the first one, and ends with `stop`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine; return its result or raise its exception. Cancellation is passed on."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._ensure_started()))

    async def stop(self) -> None:
        """End the thread; no coroutine may be running."""
        if self._loop is None or self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()
        self._loop = self._thread = None

    def _ensure_started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
            self._thread.start()
        return self._loop
