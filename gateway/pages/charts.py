"""Numbers as bars: positions and widths for SVG, which needs no styles. Pure."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Literal, NamedTuple

Unit = Literal["day", "week", "month"]

MAX_PERIODS = 120
"""Bars of a chart: more could not be told apart on a phone."""

WIDTH, HEIGHT = 600, 120
"""Size of a chart in its own units; the page scales it."""

MIN_SLOTS = 14
"""Positions for bars: a few bars alone would be as wide as the page."""

MAX_DAY = date(9999, 1, 1)
"""Days from here on have no next period in the calendar."""

BAR_WIDTH = 100.0
"""Units of a whole row; the picture is as wide as its column."""


class PeriodBar(NamedTuple):
    """One period: the first day, the number counted in it, and the rectangle."""

    first: str
    number: int
    x: float
    y: float
    width: float
    height: float


class Chart(NamedTuple):
    """Bars in order of time, without gaps; `peak` is the highest count, `total` the sum."""

    unit: Unit
    bars: tuple[PeriodBar, ...]
    peak: int
    total: int

    @property
    def counted(self) -> list[PeriodBar]:
        """Bars with a count above 0, newest first."""
        return [bar for bar in reversed(self.bars) if bar.number]


class RowBar(NamedTuple):
    """A horizontal bar of a row, from `start` on."""

    name: str
    value: float
    start: float
    width: float


def chart_of(unit: Unit, counts: Mapping[str, int]) -> Chart:
    """Return the chart of counts by the first day of their period, cut to the last `MAX_PERIODS`."""
    drawable = {day: number for day, number in counts.items() if "0001-01-01" <= day < MAX_DAY.isoformat()}
    if not drawable:
        return Chart(unit, (), 0, 0)
    days, last = [date.fromisoformat(min(drawable))], date.fromisoformat(max(drawable))
    while (following := _next(unit, days[-1])) <= last:
        days.append(following)
    days = days[-MAX_PERIODS:]
    numbers = [drawable.get(day.isoformat(), 0) for day in days]
    peak, step = max(1, *numbers), WIDTH / max(len(days), MIN_SLOTS)
    bars = []
    for position, (day, number) in enumerate(zip(days, numbers, strict=True)):
        # A count of one beside thousands must still be seen.
        height = max(HEIGHT * number / peak, 1.5) if number else 0.0
        x, y = round(position * step, 2), round(HEIGHT - height, 2)
        bars.append(PeriodBar(day.isoformat(), number, x, y, round(step * 0.8, 2), round(height, 2)))
    return Chart(unit, tuple(bars), peak, sum(numbers))


def signed_bars(values: Mapping[str, float]) -> list[RowBar]:
    """Return a bar for each value: positive ones right of the middle, negative ones left.

    >>> signed_bars({"words": 2.0, "its age": -1.0})[1]
    RowBar(name='its age', value=-1.0, start=25.0, width=25.0)
    """
    greatest = max((abs(value) for value in values.values()), default=0.0) or 1.0
    half = BAR_WIDTH / 2
    widths = {name: half * abs(value) / greatest for name, value in values.items()}
    return [
        RowBar(name, value, half if value >= 0 else round(half - widths[name], 2), round(widths[name], 2))
        for name, value in values.items()
    ]


def stacked_bars(values: Sequence[tuple[str, float]], total: float) -> list[RowBar]:
    """Return bars end to end, as shares of a total.

    >>> [bar.start for bar in stacked_bars([("rules", 30), ("evidence", 60)], 120)]
    [0.0, 25.0]
    """
    bars, start = [], 0.0
    for name, value in values:
        width = BAR_WIDTH * value / total if total else 0.0
        bars.append(RowBar(name, value, round(start, 2), round(width, 2)))
        start += width
    return bars


def _next(unit: Unit, day: date) -> date:
    if unit == "month":
        return date(day.year + day.month // 12, day.month % 12 + 1, 1)
    return day + timedelta(days=1 if unit == "day" else 7)
