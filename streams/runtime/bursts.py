"""Batch single records into bursts.

A produce request costs broker and worker a millisecond regardless of its content, and records of different partitions
that come at different times need separate requests. So records are gathered: the first one after a pause is handed over
at once, later ones together when the interval of one of them has passed: `BURST_INTERVAL_S`, or longer for records
without a waiting caller. The order is unchanged.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")

BURST_INTERVAL_S = 0.025
"""Minimum interval between bursts. Only commands and acknowledgements wait for these records: a turn is answered
before."""

UNHURRIED_INTERVAL_S = 0.1
"""The same for records without a waiting caller, such as those that report a turn's vector."""


class Bursts(Generic[T]):
    """Gathers items and hands them over in bursts. Belongs to one event loop."""

    def __init__(self, hand_over: Callable[[Sequence[T]], None], interval_s: float = BURST_INTERVAL_S) -> None:
        """`hand_over` takes a burst; `interval_s` is the minimum time between two calls."""
        self._hand_over = hand_over
        self._interval_s = interval_s
        self._gathered: list[T] = []
        self._timer: asyncio.TimerHandle | None = None
        self._last = float("-inf")
        """When the last burst was handed over."""
        self._due = float("inf")
        """Time of the timer."""

    def add(self, item: T, interval_s: float | None = None) -> None:
        """Add an item to the next burst, and advance the burst if the item's `interval_s` is shorter."""
        self._gathered.append(item)
        loop = asyncio.get_running_loop()
        due = max(loop.time(), self._last + (self._interval_s if interval_s is None else interval_s))
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due, self._timer = due, loop.call_at(due, self.flush)

    def flush(self) -> None:
        """Hand over the gathered items now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._gathered:
            burst, self._gathered = self._gathered, []
            self._last = asyncio.get_running_loop().time()
            self._hand_over(burst)
