"""Numbers as bars: places and widths for SVG, which needs no styles. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

WIDTH = 100.0
"""Units of a whole bar; the picture is as wide as its column."""


class Bar(NamedTuple):
    """One bar, from `start` on; `value` is what it stands for."""

    name: str
    value: float
    start: float
    width: float


def signed_bars(values: Mapping[str, float]) -> list[Bar]:
    """Return a bar for each value: to the right of the middle what adds, to the left what takes away.

    >>> signed_bars({"words": 2.0, "its age": -1.0})[1]
    Bar(name='its age', value=-1.0, start=25.0, width=25.0)
    """
    greatest = max((abs(value) for value in values.values()), default=0.0) or 1.0
    half = WIDTH / 2
    widths = {name: half * abs(value) / greatest for name, value in values.items()}
    return [
        Bar(name, value, half if value >= 0 else round(half - widths[name], 2), round(widths[name], 2))
        for name, value in values.items()
    ]


def stacked_bars(values: Sequence[tuple[str, float]], total: float) -> list[Bar]:
    """Return bars one behind the other, as shares of a total.

    >>> [bar.start for bar in stacked_bars([("rules", 30), ("evidence", 60)], 120)]
    [0.0, 25.0]
    """
    bars, start = [], 0.0
    for name, value in values:
        width = WIDTH * value / total if total else 0.0
        bars.append(Bar(name, value, round(start, 2), round(width, 2)))
        start += width
    return bars
