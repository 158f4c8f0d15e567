"""The current time: agents read it through this port, rules get it as an argument."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Reads the time."""

    def now(self) -> datetime:
        """Return the current time in UTC."""


class SteadyClock(Clock, Protocol):
    """Reads the time, and a second one that is never set."""

    def steady_s(self) -> float:
        """Return seconds that go on evenly, also while the machine is suspended."""
