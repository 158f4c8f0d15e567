"""A clock that only `forward` moves."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Implements `agents.ports.clock.Clock`."""

    def __init__(self, now: datetime = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)) -> None:
        self._now = now

    def now(self) -> datetime:
        """Return the current fake time."""
        return self._now

    def forward(self, seconds: float) -> None:
        """Advance the clock."""
        self._now += timedelta(seconds=seconds)
