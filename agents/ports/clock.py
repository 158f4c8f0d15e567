"""The time, as a port: rules and agents read no clock of their own."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Tells the time, so that tests can."""

    def now(self) -> datetime:
        """The time, with its zone UTC."""
        ...
