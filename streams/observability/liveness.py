"""Stall detection: a Faust app can look healthy and have stopped for good.

A worker is alive while it settles records, while there are none, and while it retries something unavailable. Recovery
and a lack of partitions count as alive for a limited time: a client stopped by an error looks like a spare worker, and
a spare worker loses nothing by a restart. Otherwise it must be killed and restarted.
"""

import time
from collections.abc import Callable

STALL_TIMEOUT_S = 60.0
"""Lag without progress for this long is a stall: every step gives up or retries sooner."""

RECOVERY_TIMEOUT_S = 900.0
"""Limit of a recovery."""


class StallDetector:
    """Detects a stall by lag without progress."""

    def __init__(
        self, progress: Callable[[], float], lag: Callable[[], int], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._progress = progress
        self._lag = lag
        self._now = now
        self._last_progress = -1.0
        self._since = now()

    def alive(self, *, recovering: bool) -> bool:
        """True if work goes on or there is none. To be called every few seconds."""
        progress = self._progress()
        if progress != self._last_progress or (self._lag() == 0 and not recovering):
            self._last_progress = progress
            self._since = self._now()
        return self._now() - self._since < (RECOVERY_TIMEOUT_S if recovering else STALL_TIMEOUT_S)
