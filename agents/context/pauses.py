"""Pauses in long work on the event loop, in which other events are handled."""

import asyncio
import time
from collections.abc import Callable

SLICE_S = 0.004
"""Seconds of work between two pauses."""

YIELDING_S = 0.1
"""Seconds of work that only let other events run, as nearly all contexts take less. A longer one leaves half of the
event loop's time to others."""


class Pauses:
    """The pauses of one request; `elapsed` counts seconds."""

    def __init__(self, elapsed: Callable[[], float] = time.perf_counter) -> None:
        self._elapsed = elapsed
        self._began = elapsed()
        self._worked = 0.0

    async def pause_if_due(self) -> None:
        """Let other events run where the slice is used up; called between two pieces of work."""
        worked = self._elapsed() - self._began
        if worked < SLICE_S:
            return
        self._worked += worked
        await asyncio.sleep(worked if self._worked > YIELDING_S else 0)
        self.begin()

    def begin(self) -> None:
        """Begin the next slice: something else was awaited meanwhile."""
        self._began = self._elapsed()
