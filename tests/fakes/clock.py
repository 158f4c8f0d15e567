"""A clock that stands still until it is moved."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Implements `agents.ports.Clock`."""

    def __init__(self, now: datetime = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)) -> None:
        self._now = now

    def now(self) -> datetime:
        """The time that it was set to."""
        return self._now

    def forward(self, seconds: float) -> None:
        """Let time pass."""
        self._now += timedelta(seconds=seconds)
