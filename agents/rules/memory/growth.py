"""How many turns were said in each day, week or month. Pure, from the columns alone.

Enters: the columns of a boundary's turns. Leaves: at most `MAX_PERIODS` counts, by the finest period that fits.
"""

from collections.abc import Collection
from typing import Literal, NamedTuple

import numpy as np

from agents.rules.index.columns import MISSING, IntArray
from agents.rules.index.memory_columns import MemoryColumns
from schemas.models.vectors import MemoryFilter
from schemas.scopes import PROJECT_FIELD

MAX_PERIODS = 120
"""Periods that are counted: as many bars as a picture shows, four months of days or ten years of months."""

DAY_MS = 86_400_000

MONDAY = 3
"""Days from a Monday to the epoch, a Thursday."""

Unit = Literal["day", "week", "month"]


class Growth(NamedTuple):
    """`periods` has the first day, as in `2026-03-01`, and the number of turns, of periods that have any; in order."""

    unit: Unit
    periods: tuple[tuple[str, int], ...]


def count_growth(memories: MemoryColumns, boundary: str, projects: Collection[str] | None) -> Growth:
    """Count the turns of these projects, None for all, by the time at which they were said."""
    where = MemoryFilter(boundary, {PROJECT_FIELD: None if projects is None else tuple(projects)})
    admitted = memories.columns.live & memories.of_kind(lambda kind: kind.admitted(where)).astype(np.bool_)
    turns = admitted & (memories.columns.conversations != MISSING)
    return growth_of(memories.columns.occurred_ms[turns])


def growth_of(times_ms: IntArray) -> Growth:
    """Count times, in ms since the epoch, by period; of more months than `MAX_PERIODS` the last ones."""
    if not len(times_ms):
        return Growth("day", ())
    days = times_ms // DAY_MS
    span = int(days.max() - days.min()) + 1
    if span <= MAX_PERIODS:
        return Growth("day", _counts(days.astype("datetime64[D]")))
    if span // 7 + 2 <= MAX_PERIODS:
        return Growth("week", _counts((days - (days + MONDAY) % 7).astype("datetime64[D]")))
    months = days.astype("datetime64[D]").astype("datetime64[M]")
    return Growth("month", _counts(months[months > months.max() - MAX_PERIODS].astype("datetime64[D]")))


def _counts(first_days: np.typing.NDArray[np.datetime64]) -> tuple[tuple[str, int], ...]:
    found, counts = np.unique(first_days, return_counts=True)
    return tuple((str(day), int(count)) for day, count in zip(found, counts, strict=True))
