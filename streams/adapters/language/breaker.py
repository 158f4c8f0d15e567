"""A circuit breaker: a profile that fails again and again rests, and is then tried by one question alone.

Enters: how each attempt ended, and the time. Leaves: whether the next may begin. Guaranteed: while it rests nothing
begins, and after a rest exactly one attempt at a time, until one succeeds.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

BreakerState = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class BreakerLimits:
    """When a breaker opens, and for how many seconds it rests: doubled each time, up to `max_open_s`."""

    failures: int = 5
    timeouts: int = 3
    initial_open_s: float = 1.0
    max_open_s: float = 30.0


JITTER = 0.25
"""Part of a rest that chance may take off, so that workers do not all come back in the same moment."""

MAX_RETRY_AFTER_S = 120.0
"""What a provider may ask for at most: a wrong header must not end understanding for a day."""


class CircuitBreaker:
    """Failures and timeouts count as long as they come in a row; stragglers of before a rest change nothing."""

    def __init__(self, limits: BreakerLimits, now: Callable[[], float], chance: Callable[[], float]) -> None:
        """`now` gives seconds that never go back, `chance` numbers in [0, 1)."""
        self._limits = limits
        self._now = now
        self._chance = chance
        self._changed = asyncio.Event()
        self._entries = 0
        self._probe: int | None = None
        self._rests_until: float | None = None
        self._failures = 0
        self._timeouts = 0
        self._rests = 0

    @property
    def state(self) -> BreakerState:
        """Closed: all may begin; open: it rests; half-open: one may begin, or has."""
        if self._rests_until is None:
            return "closed"
        return "open" if self._now() < self._rests_until else "half_open"

    @property
    def admits(self) -> bool:
        """Whether an attempt may begin now."""
        return self.state == "closed" or (self.state == "half_open" and self._probe is None)

    def enter(self) -> int | None:
        """Begin an attempt, to be ended by `passed`, `failed` or `left`; None where none may begin."""
        if not self.admits:
            return None
        self._entries += 1
        if self.state == "half_open":
            self._probe = self._entries
        return self._entries

    def passed(self) -> None:
        """An attempt was answered, whichever it was: the profile works."""
        self._close()
        self._tell()

    def failed(self, entry: int, *, timed_out: bool = False, rest_s: float = 0.0) -> None:
        """An attempt failed. `rest_s` above 0: the provider asked for a rest, which begins at once."""
        if self._rests_until is not None and entry != self._probe:
            return
        self._failures += 1
        self._timeouts = self._timeouts + 1 if timed_out else 0
        worn = self._failures >= self._limits.failures or self._timeouts >= self._limits.timeouts
        if worn or rest_s > 0 or entry == self._probe:
            self._rest(min(rest_s, MAX_RETRY_AFTER_S))
        self._tell()

    def left(self, entry: int) -> None:
        """An attempt was given up by its caller, which says nothing about the profile."""
        if entry == self._probe:
            self._probe = None
            self._tell()

    async def until_admits(self) -> None:
        """Wait until an attempt may begin; of several that wait, the first to enter may be the only one."""
        while not self.admits:
            changed = self._changed
            rest = None if self._probe is not None else max(0.0, (self._rests_until or 0.0) - self._now())
            try:
                async with asyncio.timeout(rest):
                    await changed.wait()
            except TimeoutError:
                continue

    def _close(self) -> None:
        self._rests_until = self._probe = None
        self._failures = self._timeouts = self._rests = 0

    def _rest(self, at_least_s: float) -> None:
        own = min(self._limits.max_open_s, self._limits.initial_open_s * 2.0**self._rests)
        self._rests += 1
        self._probe = None
        self._rests_until = self._now() + max(at_least_s, own * (1 - JITTER * self._chance()))

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
