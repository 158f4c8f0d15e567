"""Counts by period as bars without gaps in time."""

import pytest

from gateway.pages.charts import HEIGHT, MAX_PERIODS, WIDTH, chart_of


def test_gaps_are_empty_bars() -> None:
    chart = chart_of("day", {"2026-03-01": 4, "2026-03-03": 1})
    assert [(bar.first, bar.number) for bar in chart.bars] == [("2026-03-01", 4), ("2026-03-02", 0), ("2026-03-03", 1)]
    assert [bar.height for bar in chart.bars] == [HEIGHT, 0, HEIGHT / 4]
    assert chart.peak == 4
    assert chart.total == 5
    assert [bar.number for bar in chart.counted] == [1, 4]


@pytest.mark.parametrize(("unit", "last", "bars"), [("week", "2026-03-16", 3), ("month", "2026-05-02", 3)])
def test_steps_of_a_unit(unit: str, last: str, bars: int) -> None:
    first = "2026-03-02" if unit == "week" else "2026-03-01"
    chart = chart_of(unit, {first: 1, last if unit == "week" else "2026-05-01": 1})  # type: ignore[arg-type]
    assert len(chart.bars) == bars


def test_bars_are_bounded_and_within_the_picture() -> None:
    chart = chart_of("month", {"0001-01-01": 1, "2026-03-01": 2, "9999-12-31": 1})
    assert len(chart.bars) == MAX_PERIODS
    assert all(bar.x >= 0 and bar.x + bar.width <= WIDTH for bar in chart.bars)
    assert chart_of("day", {}).bars == ()
