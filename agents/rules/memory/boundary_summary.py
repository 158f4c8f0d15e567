"""Sum up a boundary from counts of its memories, and its growth by day, week or month. Pure."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

import numpy as np
from modestream_client.boundary import USER_BOUNDARY, BoundaryFields
from modestream_client.vocabulary import EmbeddingStatus

from agents.rules.index.columns import MISSING, IntArray
from agents.rules.index.memory_columns import MemoryColumns
from schemas.messages.published import Boundary, BoundaryMode, EmbeddingCounts
from schemas.models.vectors import MemoryFilter
from schemas.moments import DAYS_PER_WEEK, EPOCH, start_of_week
from schemas.scopes import PROJECT_FIELD
from schemas.state.modes import ModeDeclarations, ModeUsage, UsageHistory


class KindCount(NamedTuple):
    """The number of memories of one project, mode and status, their earliest and latest times in milliseconds."""

    project: str
    mode: str
    status: EmbeddingStatus
    memories: int
    first_ms: int
    last_ms: int


class CountedMemories(NamedTuple):
    """The memories of a boundary that nothing supersedes, and the number of their conversations."""

    kinds: Sequence[KindCount] = ()
    conversations: int = 0


def summarise_boundary(
    boundary: str, counted: CountedMemories, declared: ModeDeclarations, fields: BoundaryFields = USER_BOUNDARY
) -> Boundary:
    """Return the summary of a boundary; `fields` are those of its scope."""
    kinds = counted.kinds
    statuses = _sums((kind.status, kind.memories) for kind in kinds)
    memories = _sums((kind.mode, kind.memories) for kind in kinds)
    # In the order of `visible`: of one name, the user's mode comes before those of projects.
    embedders = {mode.name: mode.embedder for mode in reversed(declared.visible(None))}
    names = sorted({*embedders, *memories})
    return Boundary(
        boundary=boundary,
        scope=fields.values_of_key(boundary),
        projects=len({kind.project for kind in kinds}),
        conversations=counted.conversations,
        memories=sum(statuses.values()),
        modes={name: BoundaryMode(memories=memories.get(name, 0), embedder=embedders.get(name)) for name in names},
        embedding=EmbeddingCounts(**{name: statuses[name] for name in EmbeddingCounts.model_fields}),
        corrections=declared.corrections,
        first=_moment(min(kind.first_ms for kind in kinds)) if kinds else None,
        last=_moment(max(kind.last_ms for kind in kinds)) if kinds else None,
    )


def _moment(milliseconds: int) -> datetime:
    return EPOCH + timedelta(milliseconds=milliseconds)


def _sums(counts: Iterable[tuple[str, int]]) -> Counter[str]:
    summed: Counter[str] = Counter()
    for name, number in counts:
        summed[name] += number
    return summed


MAX_PERIODS = 120
"""Maximum counted periods: as many bars as a picture shows, four months of days or ten years of months."""

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
    distinct, counts = np.unique(first_days, return_counts=True)
    return tuple((str(day), int(count)) for day, count in zip(distinct, counts, strict=True))


def weeks_of_modes(
    memories: MemoryColumns, history: UsageHistory, renamed: Mapping[str, str], first_week: int
) -> list[dict[str, Any]]:
    """Return, oldest first, the weeks from `first_week` on in which modes got turns or were used.

    `memories` of a mode are the turns accepted in that week that are in it now. `renamed` has current names by former
    ones: the history of a mode goes on under its new name.
    """
    columns, names = memories.columns, sorted({kind.mode for kind in memories.kinds})
    # `week_of`, of all of them at once.
    weeks_of_turns = (columns.accepted_ms // DAY_MS + EPOCH.toordinal() - 1) // DAYS_PER_WEEK
    turns = columns.live & (columns.conversations != MISSING) & (weeks_of_turns >= first_week)
    modes_of_turns = memories.of_kind(lambda kind: names.index(kind.mode))[turns].astype(np.int64)
    accepted = Counter(zip(weeks_of_turns[turns].tolist(), modes_of_turns.tolist(), strict=True))
    weeks: defaultdict[int, dict[str, dict[str, int]]] = defaultdict(dict)

    def add(week: int, mode: str, counts: Mapping[str, int]) -> None:
        before = weeks[week].get(mode) or {"memories": 0, **ModeUsage().model_dump()}
        weeks[week][mode] = {name: number + counts.get(name, 0) for name, number in before.items()}

    for (week, mode), number in accepted.items():
        add(week, names[mode], {"memories": number})
    for week, used in history.weeks.items():
        for name, usage in used.items() if week >= first_week else ():
            add(week, renamed.get(name, name), usage.model_dump())
    return [
        {"week": start_of_week(week).date().isoformat(), "modes": dict(sorted(weeks[week].items()))}
        for week in sorted(weeks)
    ]
