"""A circuit breaker: opens after repeated failures of a profile, then probes it with single requests.

Guaranteed: no attempt starts while it is open, and only one at a time while it is half-open, until one succeeds.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

BreakerState = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class BreakerLimits:
    """The failures or timeouts in a row that open a breaker, and for how long: doubled each time, up to a maximum."""

    failures: int = 5
    timeouts: int = 3
    initial_open_s: float = 1.0
    max_open_s: float = 30.0


JITTER = 0.25
"""The share of the open time that is random, so that workers do not all return at the same moment."""

MAX_RETRY_AFTER_S = 120.0
"""The longest accepted Retry-After: a wrong header must not stop understanding for a day."""


class CircuitBreaker:
    """Counts failures and timeouts in a row; attempts from before it opened are ignored."""

    def __init__(self, limits: BreakerLimits, now: Callable[[], float], random_number: Callable[[], float]) -> None:
        """`now` is a monotonic clock in seconds, `random_number` gives numbers in [0, 1)."""
        self._limits = limits
        self._now = now
        self._random_number = random_number
        self._changed = asyncio.Event()
        self._entries = 0
        self._probe: int | None = None
        self._open_until: float | None = None
        self._failures = 0
        self._timeouts = 0
        self._times_opened = 0

    @property
    def state(self) -> BreakerState:
        """Closed: attempts may start; open: none may; half-open: one may, or is running."""
        if self._open_until is None:
            return "closed"
        return "open" if self._now() < self._open_until else "half_open"

    @property
    def admits(self) -> bool:
        """True if an attempt may start now."""
        return self.state == "closed" or (self.state == "half_open" and self._probe is None)

    def enter(self) -> int | None:
        """Start an attempt, to be ended by `passed`, `failed` or `left`; None if none may start."""
        if not self.admits:
            return None
        self._entries += 1
        if self.state == "half_open":
            self._probe = self._entries
        return self._entries

    def passed(self) -> None:
        """Note that any attempt was answered, so the profile works."""
        self._open_until = self._probe = None
        self._failures = self._timeouts = self._times_opened = 0
        self._notify()

    def failed(self, entry: int, *, timed_out: bool = False, retry_after_s: float = 0.0) -> None:
        """Note that an attempt failed. `retry_after_s` above 0, asked for by the provider, opens it at once."""
        if self._open_until is not None and entry != self._probe:
            return
        self._failures += 1
        self._timeouts = self._timeouts + 1 if timed_out else 0
        is_exhausted = self._failures >= self._limits.failures or self._timeouts >= self._limits.timeouts
        if is_exhausted or retry_after_s > 0 or entry == self._probe:
            open_s = min(self._limits.max_open_s, self._limits.initial_open_s * 2.0**self._times_opened)
            open_s *= 1 - JITTER * self._random_number()
            self._times_opened += 1
            self._probe = None
            self._open_until = self._now() + max(min(retry_after_s, MAX_RETRY_AFTER_S), open_s)
        self._notify()

    def left(self, entry: int) -> None:
        """Note that an attempt was cancelled, which says nothing about the profile."""
        if entry == self._probe:
            self._probe = None
            self._notify()

    async def until_admits(self) -> None:
        """Wait until an attempt may start; of several waiters, only the first to enter may get in."""
        while not self.admits:
            changed = self._changed
            remaining = None if self._probe is not None else max(0.0, (self._open_until or 0.0) - self._now())
            try:
                async with asyncio.timeout(remaining):
                    await changed.wait()
            except TimeoutError:
                continue

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
