"""Count interaction modes and corrections by week, and decide whether classifications are trusted as usual. Pure.

Enters: classifications and corrections of a partition, in order; then the counts of several partitions, or the turns of
one user. Leaves: the partition's counts; a `Stability`. Guaranteed: a user counts once a week whatever number of turns
and corrections, so no user moves a share by more than one in `MIN_WEEK_USERS`; the same event again changes nothing;
counts are bounded. A user's own weeks, where a deployment has too few users, decide for that user alone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log, sqrt
from typing import Any, Literal

import numpy as np
from modestream_client.vocabulary import Confidence, InteractionMode
from numpy.typing import NDArray

from agents.rules.cues.intents import intent_of
from agents.rules.cues.mode_taxonomy import ModeTaxonomy
from schemas.moments import week_of
from schemas.state.interaction import INTERACTION_MODES, Interaction, InteractionCounts, WeekSample, WeekTotals
from schemas.state.memories import Memory, hash_texts

# Decide a turn's interaction mode from votes and the turns before it. Pure.
#
# Votes are probabilities over the modes, multiplied in a logarithmic opinion pool (Genest & Zidek 1986): an
# uninformative vote changes nothing, two that agree are surer than either alone. The last three turns move the
# confidence a little, across the threshold only for an answer near it: users do switch from learning to debugging
# between two turns.
#
# A confidence is the probability that the answered mode is right. So an answer that falls back to GENERAL has the
# probability of GENERAL, not that of the mode it replaces.

MIN_MODE_CONFIDENCE = 0.70
"""Below this confidence a turn is GENERAL."""

INTENT_CONFIDENCE = 0.25
"""The intent table's vote for its mode, against 0.19 for each other one: a hint. The classifier has the intent among
its features already, and `fix` means a symptom in the table but a known change in every second sentence. By
cross-validation 0.2 and 0.3 are as accurate as 0.25, 0.4 is less so."""

MAX_VOTE_CONFIDENCE = 0.97
"""Upper bound of a single vote, so that the others can outvote a wrong one."""

INTENT_PRECISION = 0.91
"""Share of the training examples with an intent whose mode the intent table gives."""

GENERAL_WITHOUT_INTENT = 0.29
"""Share of GENERAL among the training examples without an intent."""

Probabilities = NDArray[np.float64]
"""Shape (5,), in the order of `INTERACTION_MODES`, summing to 1."""


class LeadingInteraction(Interaction, frozen=True):
    """The likeliest mode before any threshold; `general` is the probability of GENERAL."""

    general: Confidence


def given_interaction(mode: InteractionMode | None, intent: str | None, taxonomy: ModeTaxonomy) -> Interaction | None:
    """Return the interaction mode that a caller gives, by name or else by intent; None for neither."""
    if mode is None and intent is None:
        return None
    return Interaction(mode=mode or taxonomy.mode_of(intent), confidence=1.0)


def interaction_by_intent(text: str, taxonomy: ModeTaxonomy) -> Interaction:
    """Classify a text by the intent table alone, where the classifier is unavailable; GENERAL without an intent."""
    intent = intent_of(text)
    confidence = GENERAL_WITHOUT_INTENT if intent is None else INTENT_PRECISION
    return Interaction(mode=taxonomy.mode_of(intent), confidence=confidence)


def pool_votes(
    probabilities: Probabilities,
    by_intent: InteractionMode | None,
    model: Interaction | None,
    taxonomy: str | None = None,
) -> LeadingInteraction:
    """Return the leading mode before any threshold, as input of `apply_threshold` or `smooth_interaction`.

    `probabilities` are the classifier's; `by_intent` is the intent table's vote, ignored if it is GENERAL; `model` is a
    language model's answer, ignored at a confidence of 0; `taxonomy` is the version of the modes' tables.
    """
    votes = np.log(np.clip(probabilities, 1e-6, 1.0))
    if by_intent is not None and by_intent != "GENERAL":
        votes = votes + _vote(by_intent, INTENT_CONFIDENCE)
    if model is not None and model.confidence > 0:
        votes = votes + _vote(model.mode, model.confidence)
    shares = np.exp(votes - votes.max())
    shares /= shares.sum()
    best = int(shares.argmax())
    rounded = [round(float(share), 4) for share in shares]
    return LeadingInteraction(
        mode=INTERACTION_MODES[best],
        confidence=rounded[best],
        general=rounded[INTERACTION_MODES.index("GENERAL")],
        taxonomy=taxonomy,
    )


def apply_threshold(leading: LeadingInteraction) -> Interaction:
    """Return the mode to act on: GENERAL below the threshold."""
    if leading.confidence < MIN_MODE_CONFIDENCE:
        return _fallback(leading)
    return Interaction(mode=leading.mode, confidence=leading.confidence, taxonomy=leading.taxonomy)


HISTORY_TURNS = 3
"""Previous turns that count."""

HISTORY_WEIGHT = 0.04
"""Added to the confidence by three turns of the same mode, subtracted by three of other modes. In the labelled
conversations users switch at most turns: of 1,631 later turns 2 more are right than without it, and 5 with twice the
weight, which costs precision."""

FREQUENT_SWITCHES = 3
"""Changes within the last three turns and this one: every turn has another mode."""

SWITCHING_CONFIDENCE = 0.72
"""Minimum confidence under frequent switching. From 0.72 to 0.80 it costs one of 1,631 later turns, 0.85 five."""

HIGH_CONFIDENCE = 0.85
"""Minimum confidence under drift or many errors: nineteen of twenty such answers are right, whatever the mix of a
deployment's turns. 1.0 would make every turn GENERAL then."""


def smooth_interaction(
    now: LeadingInteraction, before: Sequence[Interaction], *, is_unstable: bool = False
) -> Interaction:
    """Return the mode to act on; `before` are the previous turns, oldest first, of which the last three count.

    A steady conversation can lift a leading mode above the threshold. The result is GENERAL below the threshold:
    `HIGH_CONFIDENCE` if `is_unstable` (the deployment's classifications drift or err), `SWITCHING_CONFIDENCE` under
    frequent switching, else `MIN_MODE_CONFIDENCE`.
    """
    last, adjusted = before[-HISTORY_TURNS:], now.confidence
    if last:
        agreeing = sum(1 if turn.mode == now.mode else -1 for turn in last) / HISTORY_TURNS
        moved = now.confidence + HISTORY_WEIGHT * agreeing
        if agreeing < 0:
            # A confidence above the threshold stays above it.
            moved = max(min(now.confidence, MIN_MODE_CONFIDENCE), moved)
        adjusted = round(min(1.0, moved), 4)
    modes = [turn.mode for turn in (*last, now)]
    # Switching: every turn changed the mode; changes from or to GENERAL don't count.
    switches = sum(mode != other and "GENERAL" not in (mode, other) for mode, other in pairwise(modes))
    usual = SWITCHING_CONFIDENCE if switches >= FREQUENT_SWITCHES else MIN_MODE_CONFIDENCE
    threshold = HIGH_CONFIDENCE if is_unstable else usual
    if max(now.confidence, adjusted) < threshold:
        return _fallback(now)
    return Interaction(mode=now.mode, confidence=adjusted, taxonomy=now.taxonomy)


MAX_SAMPLE_USERS = 500
"""Users of a partition and week that are counted, the first ones: a row of at most 22 KB. Further users change no
decision."""

USER_HASH_CHARS = 12
"""Hexadecimal digits that identify a user within a week."""

MIN_WEEK_USERS = 200
"""Users in each of two weeks below which each user's own weeks decide. Of 10,000 simulated pairs of weeks with the same
mix, 6 to 21 have a divergence above `MAX_DIVERGENCE` with 200 users each, 400 with 100."""

MIN_WEEK_TURNS = 50
"""A user's turns in each of two weeks below which nothing is decided by them."""

MAX_WEEK_TURNS = 200
"""A user's turns of a week that count, the latest ones."""

MAX_DIVERGENCE = 0.1
"""Kullback-Leibler divergence, in nats, above which the mix of modes has drifted, if it is not by chance."""

_CHANCE_STATISTIC = 18.47
"""Twice the divergence over `1 / now + 1 / then` that one pair of weeks in 1,000 with the same mix exceeds (chi
squared, four degrees of freedom). With 200 of each that is a divergence of 0.09, with 50 of 0.37."""

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
    """This week and the last, and the reasons for using only confident classifications; without reasons, all are used.

    `divergence` compares this week's mix with last week's; None while either week has too few users. `of_user`: the
    weeks are one user's, and their `users` count turns.
    """

    this_week: WeekTotals
    last_week: WeekTotals
    divergence: float | None = None
    reasons: tuple[FallbackReason, ...] = ()
    of_user: bool = False

    @property
    def has_few_users(self) -> bool:
        """True if a deployment has too few users to decide for them."""
        return min(self.this_week.users, self.last_week.users) < MIN_WEEK_USERS

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


StabilitySource = Callable[[str], Stability]
"""Returns the stability now for a user, by the boundary."""


def assume_stable(_boundary: str = "") -> Stability:
    """Return the stability of a deployment without counts."""
    return Stability(WeekTotals(), WeekTotals())


def describe_fallback(stability: Stability) -> str:
    """Say why only confident classifications are used, as a warning."""
    now, then = stability.this_week, stability.last_week
    because: dict[FallbackReason, str] = {
        "corrections": f"{now.corrected} of {now.users} {'turns' if stability.of_user else 'users'} corrected "
        f"this week, {then.corrected} of {then.users} last week",
        "drift": f"the mix of interaction modes differs from last week's by {stability.divergence or 0:.2f} nats",
    }
    said = "; ".join(because[reason] for reason in stability.reasons)
    whose = "for this user" if stability.of_user else "in this deployment"
    return f"{whose} the interaction mode is GENERAL unless it is highly confident: {said}"


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
    """Compare the week so far with the week before, over these partitions."""
    totals = [total for counts in partitions for total in (_total(counts.latest), counts.before)]
    this_week, last_week = (_sum(totals, number) for number in (week, week - 1))
    return _compare(Stability(this_week, last_week), MIN_WEEK_USERS)


def assess_own_weeks(turns: Sequence[Memory], week: int) -> Stability:
    """Compare a user's turns of the week so far with those of the week before, by the turns' own times."""
    return _compare(Stability(_own_week(turns, week), _own_week(turns, week - 1), of_user=True), MIN_WEEK_TURNS)


def _own_week(turns: Iterable[Memory], week: int) -> WeekTotals:
    readings = [turn.reading for turn in turns if week_of(turn.occurred_at) == week]
    modes = Counter(reading.interaction.mode for reading in readings if reading.interaction is not None)
    corrected = sum(reading.is_corrected for reading in readings)
    return WeekTotals(week=week, users=len(readings), modes=dict(modes), corrected=corrected)


def _compare(weeks: Stability, least: int) -> Stability:
    """Decide from two weeks; no decision if either has fewer users or turns than `least`."""
    now, then = weeks.this_week, weeks.last_week
    if min(now.users, then.users) < least:
        return weeks
    read = [sum(week.modes.values()) for week in (now, then)]
    divergence = kl_divergence(now.modes, then.modes) if min(read) >= least else None
    by_chance = _CHANCE_STATISTIC / 2 * sum(1 / max(1, turns) for turns in read)
    decided: dict[FallbackReason, bool] = {
        "corrections": has_error_spike(now, then),
        "drift": divergence is not None and divergence > max(MAX_DIVERGENCE, by_chance),
    }
    reasons = tuple(reason for reason in FALLBACK_REASONS if decided[reason])
    return replace(weeks, divergence=divergence, reasons=reasons)


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


def _fallback(leading: LeadingInteraction) -> Interaction:
    return Interaction(mode="GENERAL", confidence=leading.general, taxonomy=leading.taxonomy)


def _vote(mode: InteractionMode, confidence: float) -> Probabilities:
    """Return one vote as log probabilities; a confidence of a fifth or less gives an even vote."""
    even = 1 / len(INTERACTION_MODES)
    share = min(max(confidence, even), MAX_VOTE_CONFIDENCE)
    rest = (1 - share) / (len(INTERACTION_MODES) - 1)
    return np.log([share if other == mode else rest for other in INTERACTION_MODES])
