"""Counts by day, week or month as a bar chart with a table. Pure.

Enters: the first days of periods with counts. Leaves: bars with places in an SVG, without gaps in time.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Literal, NamedTuple

Unit = Literal["day", "week", "month"]

MAX_PERIODS = 120
"""Bars of a chart: more could not be told apart on a phone."""

WIDTH, HEIGHT = 600, 120
"""The size of the picture in its own units; the page scales it."""

MIN_SLOTS = 14
"""Places for bars: a few bars alone would be as wide as the page."""

MAX_DAY = date(9999, 1, 1)
"""Days from here on have no next period in the calendar."""


class Bar(NamedTuple):
    """One period: the first day, the number counted in it, and the rectangle."""

    first: str
    number: int
    x: float
    y: float
    width: float
    height: float


class Chart(NamedTuple):
    """Bars in order of time; `peak` is the highest count, `total` the sum."""

    unit: Unit
    bars: tuple[Bar, ...]
    peak: int
    total: int

    @property
    def counted(self) -> list[Bar]:
        """The periods that have any, newest first."""
        return [bar for bar in reversed(self.bars) if bar.number]


def chart_of(unit: Unit, counts: Mapping[str, int]) -> Chart:
    """Return the chart of counts by the first day of their period; of more than `MAX_PERIODS` the last ones."""
    known = {day: number for day, number in counts.items() if "0001-01-01" <= day < MAX_DAY.isoformat()}
    if not known:
        return Chart(unit, (), 0, 0)
    days = list(_days(unit, date.fromisoformat(min(known)), date.fromisoformat(max(known))))[-MAX_PERIODS:]
    numbers = [known.get(day.isoformat(), 0) for day in days]
    peak, step = max(1, *numbers), WIDTH / max(len(days), MIN_SLOTS)
    bars = tuple(
        _bar(day.isoformat(), number, place * step, step * 0.8, HEIGHT * number / peak)
        for place, (day, number) in enumerate(zip(days, numbers, strict=True))
    )
    return Chart(unit, bars, peak, sum(numbers))


def by_period(days: Mapping[str, int]) -> tuple[Unit, Mapping[str, int]]:
    """Sum up days into the finest unit of which `MAX_PERIODS` cover all."""
    known = {date.fromisoformat(day): number for day, number in days.items()}
    if not known:
        return "day", {}
    span = (max(known) - min(known)).days + 1
    unit: Unit = "day" if span <= MAX_PERIODS else "week" if span // 7 + 2 <= MAX_PERIODS else "month"
    summed: Counter[str] = Counter()
    for day, number in known.items():
        summed[_first_of(unit, day).isoformat()] += number
    return unit, summed


def _bar(first: str, number: int, x: float, width: float, height: float) -> Bar:
    # A count of one beside thousands must still be seen.
    shown = max(height, 1.5) if number else 0.0
    return Bar(first, number, round(x, 2), round(HEIGHT - shown, 2), round(width, 2), round(shown, 2))


def _days(unit: Unit, first: date, last: date) -> Iterator[date]:
    day = first
    while day <= last:
        yield day
        day = _next(unit, day)


def _next(unit: Unit, day: date) -> date:
    if unit == "month":
        return date(day.year + day.month // 12, day.month % 12 + 1, 1)
    return day + timedelta(days=1 if unit == "day" else 7)


def _first_of(unit: Unit, day: date) -> date:
    if unit == "month":
        return day.replace(day=1)
    # The first Monday of the calendar is its first day.
    return day if unit == "day" else day - timedelta(days=day.weekday())
