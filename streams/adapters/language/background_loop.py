"""An event loop in a thread of its own, for work that would hold up the other one for milliseconds at a time.

Both share the interpreter, which changes hands within half a millisecond (see the worker's switch interval): what waits
on the first loop waits so long, not for all that the second has to do.
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class BackgroundEventLoop:
    """Runs coroutines beside the caller's loop. Its thread is started by the first, and ends with `stop`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of a coroutine, or its exception; cancelling this cancels it there."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._running()))

    async def stop(self) -> None:
        """End the thread; nothing may be under way."""
        if self._loop is None or self._thread is None:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join)
        self._loop.close()
        self._loop = self._thread = None

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
            self._thread.start()
        return self._loop
