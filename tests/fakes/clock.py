"""A clock that only `forward` moves."""

from datetime import UTC, datetime, timedelta


class FakeClock:
    """Implements `agents.ports.clock.SteadyClock`."""

    def __init__(self, now: datetime = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)) -> None:
        self._now = now
        self._steady_s = 0.0

    def now(self) -> datetime:
        return self._now

    def steady_s(self) -> float:
        """Return the seconds that it was forwarded by."""
        return self._steady_s

    def forward(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._steady_s += seconds

    def set(self, seconds_ahead: float) -> None:
        """Set the time of day, as an operator does."""
        self._now += timedelta(seconds=seconds_ahead)
