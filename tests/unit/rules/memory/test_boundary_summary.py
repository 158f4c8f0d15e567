from datetime import UTC, datetime

import numpy as np

from agents.rules.memory.boundary_summary import MAX_PERIODS, growth_of
from schemas.moments import milliseconds_of


def times(*days: str) -> np.typing.NDArray[np.int64]:
    return np.array([milliseconds_of(datetime.fromisoformat(day).replace(tzinfo=UTC)) for day in days], np.int64)


def test_no_turns() -> None:
    assert growth_of(times()) == ("day", ())


def test_days() -> None:
    assert growth_of(times("2026-03-02T23:59", "2026-03-01T00:00", "2026-03-02T00:00")) == (
        "day",
        (("2026-03-01", 1), ("2026-03-02", 2)),
    )


def test_weeks_begin_on_monday() -> None:
    found = growth_of(times("2026-03-01T12:00", "2026-03-02T12:00", "2026-03-08T12:00", "2026-09-01T12:00"))
    assert found == ("week", (("2026-02-23", 1), ("2026-03-02", 2), ("2026-08-31", 1)))


def test_the_last_months_of_a_long_time_with_years_before_the_epoch() -> None:
    found = growth_of(times("1923-05-05T00:00", "2017-01-31T00:00", "2026-03-31T00:00"))
    assert found == ("month", (("2017-01-01", 1), ("2026-03-01", 1)))


def test_counts_are_bounded() -> None:
    found = growth_of(np.arange(0, 100 * 365 * 86_400_000, 86_400_000, dtype=np.int64))
    assert found.unit == "month"
    assert len(found.periods) == MAX_PERIODS
