"""The current time: agents read it through this port, rules get it as an argument."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Reads the time."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
