"""Whether this worker makes progress: a Faust app can look healthy and have stopped for good.

It is alive while records are settled, while there is none to settle, while it waits for something unavailable, and
while it recovers or has no partitions, for a while: a client that was parked by an error looks like a spare worker,
and a spare worker loses nothing by a new start. Otherwise it is to be killed and started again.
"""

import time
from collections.abc import Callable

STALL_TIMEOUT_S = 60.0
"""Lag without progress for so long is a stop: every step gives up or retries within less."""

RECOVERY_TIMEOUT_S = 900.0
"""A recovery may take so long; one that hangs never ends."""


class StallDetector:
    """Judges by the numbers that change while work is done."""

    def __init__(
        self, progress: Callable[[], float], lag: Callable[[], int], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._progress = progress
        self._lag = lag
        self._now = now
        self._seen = -1.0
        self._since = now()

    def alive(self, *, recovering: bool) -> bool:
        """Whether work goes on, or there is none. To be asked every few seconds."""
        done = self._progress()
        if done != self._seen or (self._lag() == 0 and not recovering):
            self._seen = done
            self._since = self._now()
        return self._now() - self._since < (RECOVERY_TIMEOUT_S if recovering else STALL_TIMEOUT_S)
