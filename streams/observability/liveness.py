"""Tells whether a worker works, for `/live`: a new start of one that does not may heal it.

A retry is no work. Time in which a dependency is away does not count, as a new start would not bring it back; but a
record that is sent again and again while others are written is a stall.
"""

import time
from collections.abc import Callable, Mapping

STALL_TIMEOUT_S = 60.0
"""Lag without progress for this long is a stall: every step gives up or retries sooner."""

STUCK_TIMEOUT_S = 300.0
"""How long one event may hold up its partition while others go on: several times what the largest turns take behind
each other."""

RECOVERY_TIMEOUT_S = 900.0
"""Limit of a recovery."""

Positions = Mapping[tuple[str, int], int]
"""The offset of the oldest event that is not acknowledged, by topic and partition; idle partitions are left out."""


class StallDetector:
    """Detects a worker that stands still, and a partition that does."""

    def __init__(
        self,
        progress: Callable[[], float],
        lag: Callable[[], int],
        positions: Callable[[], Positions],
        is_away: Callable[[], bool],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """`is_away` is true while a dependency is known to be away."""
        self._progress = progress
        self._lag = lag
        self._positions = positions
        self._is_away = is_away
        self._now = now
        self._last_progress = -1.0
        self._looked_at = now()
        self._stalled_s = 0.0
        self._stuck_s: dict[tuple[tuple[str, int], int], float] = {}

    def alive(self, *, recovering: bool) -> bool:
        """True if work goes on or there is none. To be called every few seconds."""
        now = self._now()
        counted, self._looked_at = (0.0 if self._is_away() else now - self._looked_at), now
        progress = self._progress()
        has_moved, self._last_progress = progress != self._last_progress, progress
        is_idle = self._lag() == 0 and not recovering
        self._stalled_s = 0.0 if has_moved or is_idle else self._stalled_s + counted
        if recovering:
            self._stuck_s.clear()
            return self._stalled_s < RECOVERY_TIMEOUT_S
        self._stuck_s = {
            position: self._stuck_s[position] + counted if position in self._stuck_s else 0.0
            for position in self._positions().items()
        }
        return self._stalled_s < STALL_TIMEOUT_S and max(self._stuck_s.values(), default=0.0) < STUCK_TIMEOUT_S
