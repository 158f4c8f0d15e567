"""Count interaction modes and corrections by week, and decide whether classifications are trusted as usual. Pure.

Enters: classifications and corrections of a partition, in order; then the counts of several partitions. Leaves: the
partition's counts; a `Stability`. Guaranteed: a user counts once a week whatever number of turns and corrections, so no
user moves a share by more than one in `MIN_WEEK_USERS`; the same event again changes nothing; counts are bounded.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import log, sqrt
from typing import Any, Literal

from modestream_client.vocabulary import InteractionMode

from agents.rules.memory.versions import hash_texts
from schemas.state.interaction import INTERACTION_MODES, InteractionCounts, WeekSample, WeekTotals

DAYS_PER_WEEK = 7

MAX_SAMPLE_USERS = 500
"""Users of a partition and week that are counted, the first ones: a row of at most 22 KB. Further users change no
decision."""

USER_HASH_CHARS = 12
"""Hexadecimal digits by which a user is known again within a week."""

MIN_WEEK_USERS = 200
"""Users in each of two weeks below which nothing is decided. Of 10,000 simulated pairs of weeks with the same mix, 6 to
21 have a divergence above `MAX_DIVERGENCE` with 200 users each, 400 with 100."""

MAX_DIVERGENCE = 0.1
"""Kullback-Leibler divergence, in nats, above which the mix of modes has drifted."""

MAX_ERROR_RATIO = 2.0
"""Ratio to the share of correcting users in the week before, above which errors have spiked."""

MIN_STANDARD_ERRORS = 3.0
"""The least difference of the two shares, in standard errors. Without it one in eight pairs of weeks with the same rate
is a spike, at the worst rate (5 of 200 users against 2); with it one in 700."""

_PSEUDOCOUNT = 0.5
"""Added to each count (Jeffreys' prior), so that a mode without earlier occurrences gives a finite divergence."""

FallbackReason = Literal["corrections", "drift"]

FALLBACK_REASONS: tuple[FallbackReason, ...] = ("corrections", "drift")


@dataclass(frozen=True, slots=True)
class Stability:
    """This week and the last, and the reasons why only confident classifications are used now; none: no fallback.

    `divergence` is that of this week's mix from last week's, None while one of them has too few users.
    """

    this_week: WeekTotals
    last_week: WeekTotals
    divergence: float | None = None
    reasons: tuple[FallbackReason, ...] = ()

    @property
    def is_fallback(self) -> bool:
        """True if only confident classifications are used."""
        return bool(self.reasons)

    def report(self) -> dict[str, Any]:
        """Return the decision and its figures, for `health`."""
        weeks = {"this_week": self.this_week, "last_week": self.last_week}
        return {
            "fallback": list(self.reasons),
            "divergence": None if self.divergence is None else round(self.divergence, 4),
            **{name: week.model_dump(exclude={"week"}) for name, week in weeks.items()},
        }


StabilitySource = Callable[[], Stability]
"""Returns the stability now."""


def assume_stable() -> Stability:
    """Return the stability of a deployment without counts."""
    return Stability(WeekTotals(), WeekTotals())


def describe_fallback(stability: Stability) -> str:
    """Say why only confident classifications are used, as a warning."""
    now, then = stability.this_week, stability.last_week
    because: dict[FallbackReason, str] = {
        "corrections": f"{now.corrected} of {now.users} users corrected an interaction mode this week, "
        f"{then.corrected} of {then.users} last week",
        "drift": f"the mix of interaction modes differs from last week's by {stability.divergence or 0:.2f} nats",
    }
    said = "; ".join(because[reason] for reason in stability.reasons)
    return f"in this deployment the interaction mode is GENERAL unless it is highly confident: {said}"


def week_of(moment: datetime) -> int:
    """Return the number of a moment's week, which begins on Monday at 0:00 UTC."""
    return (moment.astimezone(UTC).toordinal() - 1) // DAYS_PER_WEEK


def count_classification(
    counts: InteractionCounts, boundary: str, mode: InteractionMode, week: int
) -> InteractionCounts:
    """Count a user's classified turn; the same object if it changes nothing."""
    latest, user = _sample_of(counts, week), _hash(boundary)
    if latest is None or user in latest.modes or not _has_room(latest, user):
        return counts
    return _with(counts, latest.model_copy(update={"modes": {**latest.modes, user: mode}}))


def count_correction(counts: InteractionCounts, boundary: str, week: int) -> InteractionCounts:
    """Count a user's correction; the same object if it changes nothing."""
    latest, user = _sample_of(counts, week), _hash(boundary)
    if latest is None or user in latest.corrected or not _has_room(latest, user):
        return counts
    return _with(counts, latest.model_copy(update={"corrected": (*latest.corrected, user)}))


def without_user(counts: InteractionCounts, boundary: str) -> InteractionCounts:
    """Take a user out of the latest week; the same object if it is not in it. Earlier totals name no user."""
    latest, user = counts.latest, _hash(boundary)
    if user not in latest.modes and user not in latest.corrected:
        return counts
    modes = {other: mode for other, mode in latest.modes.items() if other != user}
    corrected = tuple(other for other in latest.corrected if other != user)
    others = latest.model_copy(update={"modes": modes, "corrected": corrected})
    return counts.model_copy(update={"latest": others})


def assess_stability(partitions: Iterable[InteractionCounts], week: int) -> Stability:
    """Compare a week, as far as it has come, with the week before, over these partitions."""
    totals = [total for counts in partitions for total in (_total(counts.latest), counts.before)]
    this_week, last_week = (_sum(totals, number) for number in (week, week - 1))
    if min(this_week.users, last_week.users) < MIN_WEEK_USERS:
        return Stability(this_week, last_week)
    has_modes = min(sum(week.modes.values()) for week in (this_week, last_week)) >= MIN_WEEK_USERS
    divergence = kl_divergence(this_week.modes, last_week.modes) if has_modes else None
    has_drifted = divergence is not None and divergence > MAX_DIVERGENCE
    decided: dict[FallbackReason, bool] = {"corrections": has_error_spike(this_week, last_week), "drift": has_drifted}
    return Stability(this_week, last_week, divergence, tuple(reason for reason in FALLBACK_REASONS if decided[reason]))


def kl_divergence(recent: Mapping[InteractionMode, int], before: Mapping[InteractionMode, int]) -> float:
    """Return the Kullback-Leibler divergence of the recent mix from the one before, in nats; 0 for two empty ones."""
    pairs = zip(_shares(recent), _shares(before), strict=True)
    return sum(now * log(now / then) for now, then in pairs)


def has_error_spike(recent: WeekTotals, before: WeekTotals) -> bool:
    """True if the share of correcting users is above `MAX_ERROR_RATIO` times the earlier one, and not by chance.

    Both weeks must have users.
    """
    now, then = recent.corrected / recent.users, before.corrected / before.users
    pooled = (recent.corrected + before.corrected) / (recent.users + before.users)
    error = sqrt(pooled * (1 - pooled) * (1 / recent.users + 1 / before.users))
    return now > MAX_ERROR_RATIO * then and now - then > MIN_STANDARD_ERRORS * error


def _sample_of(counts: InteractionCounts, week: int) -> WeekSample | None:
    """Return the sample to which an event of a week is added, empty for a new week; None for a week that is over."""
    if week < counts.latest.week:
        return None
    return counts.latest if week == counts.latest.week else WeekSample(week=week)


def _has_room(sample: WeekSample, user: str) -> bool:
    users = sample.modes.keys() | set(sample.corrected)
    return user in users or len(users) < MAX_SAMPLE_USERS


def _with(counts: InteractionCounts, latest: WeekSample) -> InteractionCounts:
    """Replace the latest sample; that of an earlier week becomes `before`."""
    before = counts.before if latest.week == counts.latest.week else _total(counts.latest)
    return InteractionCounts(latest=latest, before=before)


def _total(sample: WeekSample) -> WeekTotals:
    return WeekTotals(
        week=sample.week,
        users=len(sample.modes.keys() | set(sample.corrected)),
        modes=dict(Counter(sample.modes.values())),
        corrected=len(sample.corrected),
    )


def _sum(totals: Iterable[WeekTotals], week: int) -> WeekTotals:
    chosen = [total for total in totals if total.week == week]
    modes = {mode: sum(total.modes.get(mode, 0) for total in chosen) for mode in INTERACTION_MODES}
    corrected = sum(total.corrected for total in chosen)
    return WeekTotals(week=week, users=sum(total.users for total in chosen), modes=modes, corrected=corrected)


def _shares(modes: Mapping[InteractionMode, int]) -> list[float]:
    total = sum(modes.values()) + _PSEUDOCOUNT * len(INTERACTION_MODES)
    return [(modes.get(mode, 0) + _PSEUDOCOUNT) / total for mode in INTERACTION_MODES]


def _hash(boundary: str) -> str:
    return hash_texts([boundary])[:USER_HASH_CHARS]
