"""Token buckets by name: rate limits with bursts. Bounded memory."""

import time
from collections import OrderedDict
from collections.abc import Callable

MAX_BUCKETS = 10_000
"""Maximum remembered names, least recently used first out."""


class Buckets:
    """`rate` a second for each name, and `burst` at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = max(1.0, burst)
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> float:
        """Take one token of a name; return 0, or the seconds until the next one."""
        now = self._clock()
        left, at = self._left.pop(name, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        wait_s = 0.0 if left >= 1 else (1 - left) / self._rate
        self._left[name] = (left - 1 if wait_s == 0 else left, now)
        if len(self._left) > MAX_BUCKETS:
            self._left.popitem(last=False)
        return wait_s

    def charge(self, name: str, count: int) -> None:
        """Take tokens of a name even if they are not there: the next `take` waits until they are."""
        left, at = self._left.get(name, (self._burst, self._clock()))
        self._left[name] = (left - count, at)
