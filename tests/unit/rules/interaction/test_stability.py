"""Weekly counts of interaction modes and corrections, and the decision that they allow."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from modestream_client.vocabulary import InteractionMode

from agents.rules.interaction.stability import (
    MAX_DIVERGENCE,
    MAX_SAMPLE_USERS,
    MIN_WEEK_TURNS,
    MIN_WEEK_USERS,
    Stability,
    assess_own_weeks,
    assess_stability,
    count_classification,
    count_correction,
    describe_fallback,
    kl_divergence,
    without_user,
)
from schemas.moments import week_of
from schemas.state.interaction import INTERACTION_MODES, Interaction, InteractionCounts, WeekTotals
from schemas.state.memories import Memory, TurnUnderstanding
from tests.builders.memories import made

WEEK = 100_000
USERS = 2 * MIN_WEEK_USERS
EVEN: dict[InteractionMode, int] = dict.fromkeys(INTERACTION_MODES, USERS // 5)
TASKS: dict[InteractionMode, int] = {"TASK": USERS}


def week(
    number: int, modes: dict[InteractionMode, int], *, corrected: int = 0, counts: InteractionCounts | None = None
) -> InteractionCounts:
    """Add a week with these numbers of users by mode, the first of them correcting one."""
    counts, user = counts or InteractionCounts(), 0
    for mode, users in modes.items():
        for _ in range(users):
            counts = count_classification(counts, f"u{user}", mode, number)
            user += 1
    for each in range(corrected):
        counts = count_correction(counts, f"u{each}", number)
    return counts


def two_weeks(
    before: dict[InteractionMode, int], now: dict[InteractionMode, int], corrected: tuple[int, int] = (0, 0)
) -> Stability:
    counts = week(WEEK, now, corrected=corrected[1], counts=week(WEEK - 1, before, corrected=corrected[0]))
    return assess_stability([counts], WEEK)


def test_week_begins_on_monday_in_utc() -> None:
    sunday = datetime(2026, 3, 1, 23, 59, tzinfo=UTC)
    assert week_of(sunday + timedelta(minutes=1)) == week_of(sunday) + 1
    assert week_of(sunday.astimezone(timezone(timedelta(hours=14)))) == week_of(sunday)


def test_same_mix_is_stable() -> None:
    stability = two_weeks(EVEN, EVEN)
    assert not stability.is_fallback
    assert stability.divergence == pytest.approx(0)


@pytest.mark.parametrize(("before", "now"), [(EVEN, TASKS), (TASKS, EVEN)])
def test_another_mix_has_drifted_even_with_a_new_mode(
    before: dict[InteractionMode, int], now: dict[InteractionMode, int]
) -> None:
    assert two_weeks(before, now).reasons == ("drift",)


def test_small_change_is_no_drift() -> None:
    stability = two_weeks(EVEN, EVEN | {"TASK": 100, "GENERAL": 60})
    assert stability.divergence is not None
    assert 0 < stability.divergence < MAX_DIVERGENCE
    assert not stability.is_fallback


def test_drift_ends_a_week_later() -> None:
    drifted = week(WEEK, TASKS, counts=week(WEEK - 1, EVEN))
    assert assess_stability([drifted], WEEK).is_fallback
    assert not assess_stability([drifted], WEEK + 1).is_fallback
    assert not assess_stability([week(WEEK + 1, TASKS, counts=drifted)], WEEK + 1).is_fallback


def test_only_the_week_directly_before_is_compared() -> None:
    counts = week(WEEK, TASKS, counts=week(WEEK - 2, EVEN))
    assert not assess_stability([counts], WEEK).is_fallback


def test_two_empty_mixes_do_not_diverge() -> None:
    assert kl_divergence({}, {}) == 0


def test_spike_is_more_than_twice_the_share_of_the_week_before() -> None:
    assert two_weeks(EVEN, EVEN, corrected=(30, 65)).reasons == ("corrections",)
    assert not two_weeks(EVEN, EVEN, corrected=(30, 60)).is_fallback


def test_few_corrections_are_chance() -> None:
    assert not two_weeks(EVEN, EVEN, corrected=(2, 8)).is_fallback
    assert not two_weeks(EVEN, EVEN, corrected=(0, 8)).is_fallback
    assert two_weeks(EVEN, EVEN, corrected=(0, 10)).reasons == ("corrections",)


@pytest.mark.parametrize("few", [0, 1, 10, MIN_WEEK_USERS - 1])
def test_nothing_is_decided_with_few_users(few: int) -> None:
    assert not two_weeks(TASKS, {"GENERAL": few}, corrected=(0, few)).is_fallback
    assert not two_weeks({"GENERAL": few}, TASKS, corrected=(0, USERS)).is_fallback


def test_users_of_several_partitions_are_added_up() -> None:
    partitions = [
        week(WEEK, {"TASK": MIN_WEEK_USERS // 2}, counts=week(WEEK - 1, {"GENERAL": MIN_WEEK_USERS // 2}))
        for _ in range(2)
    ]
    assert not assess_stability(partitions[:1], WEEK).is_fallback
    stability = assess_stability(partitions, WEEK)
    assert stability.this_week.users == MIN_WEEK_USERS
    assert stability.reasons == ("drift",)


def test_partition_without_turns_this_week_has_a_week_before() -> None:
    quiet = week(WEEK - 1, {"GENERAL": MIN_WEEK_USERS})
    busy = week(WEEK, {"TASK": MIN_WEEK_USERS})
    assert assess_stability([quiet, busy], WEEK).reasons == ("drift",)


@given(
    st.lists(st.tuples(st.sampled_from(INTERACTION_MODES), st.booleans()), max_size=40),
    st.integers(MIN_WEEK_USERS, MIN_WEEK_USERS + 20),
)
def test_one_user_changes_no_decision(events: list[tuple[InteractionMode, bool]], others: int) -> None:
    """Whatever one user does, this week or the last, among users of a steady mix."""
    steady: dict[InteractionMode, int] = {"TASK": others // 2, "GENERAL": others - others // 2}
    counts = InteractionCounts()
    for number in (WEEK - 1, WEEK):
        counts = week(number, steady, corrected=3, counts=counts)
        for mode, is_correction in events:
            count = count_correction(counts, "eve", number) if is_correction else None
            counts = count or count_classification(counts, "eve", mode, number)
    assert not assess_stability([counts], WEEK).is_fallback
    assert assess_stability([counts], WEEK).this_week.users <= others + 1


def test_repeated_event_changes_nothing() -> None:
    counts = count_correction(count_classification(InteractionCounts(), "ana", "TASK", WEEK), "ana", WEEK)
    assert count_classification(counts, "ana", "DEBUGGING", WEEK) is counts
    assert count_correction(counts, "ana", WEEK) is counts


def test_event_of_an_earlier_week_is_not_counted() -> None:
    counts = count_classification(InteractionCounts(), "ana", "TASK", WEEK)
    assert count_classification(counts, "ben", "TASK", WEEK - 1) is counts
    assert count_correction(counts, "ben", WEEK - 1) is counts


def test_counts_are_bounded_and_name_no_user() -> None:
    counts = week(WEEK, {"EXPLORATION": 3 * MAX_SAMPLE_USERS}, corrected=3 * MAX_SAMPLE_USERS)
    assert len(counts.latest.modes) == len(counts.latest.corrected) == MAX_SAMPLE_USERS
    assert len(counts.model_dump_json()) < 32_000
    assert "u17" not in counts.model_dump_json()


def test_forgotten_user_is_counted_anew() -> None:
    counts = count_correction(count_classification(InteractionCounts(), "ana", "TASK", 1), "ben", 1)
    counted = count_classification(count_correction(counts, "ana", 1), "ben", "TASK", 1)
    left = without_user(counted, "ana")
    assert len(left.latest.modes) == 1
    assert len(left.latest.corrected) == 1
    assert without_user(left, "ana") is left
    assert count_classification(left, "ana", "GENERAL", 1) != left


def test_correcting_user_without_turns_counts_as_a_user() -> None:
    counts = count_correction(InteractionCounts(), "ana", WEEK)
    [total] = [assess_stability([counts], WEEK).this_week]
    assert total == WeekTotals(week=WEEK, users=1, modes=dict.fromkeys(INTERACTION_MODES, 0), corrected=1)


def own_week(number: int, modes: dict[InteractionMode, int], corrected: int = 0) -> list[Memory]:
    """Return a user's turns of a week, the first of them corrected."""
    spread = [mode for mode, turns in modes.items() for _ in range(turns)]
    return [
        made(
            f"turn {turn}",
            turn,
            occurred_at=datetime.fromordinal(number * 7 + 1).replace(tzinfo=UTC) + timedelta(minutes=turn),
            reading=TurnUnderstanding(
                interaction=Interaction(mode=mode, confidence=0.9), is_corrected=turn < corrected
            ),
        )
        for turn, mode in enumerate(spread)
    ]


OWN: dict[InteractionMode, int] = {"TASK": 30, "DEBUGGING": 20, "GENERAL": 20}


def own_weeks(before: list[Memory], now: list[Memory]) -> Stability:
    return assess_own_weeks([*before, *now], WEEK)


def test_own_weeks_of_the_same_mix_are_stable() -> None:
    assert own_weeks(own_week(WEEK - 1, OWN), own_week(WEEK, OWN)).reasons == ()


def test_own_week_of_another_mix_is_a_drift() -> None:
    assert own_weeks(own_week(WEEK - 1, OWN), own_week(WEEK, {"LEARNING": 70})).reasons == ("drift",)


def test_divergence_of_few_turns_is_chance() -> None:
    stability = own_weeks(own_week(WEEK - 1, OWN), own_week(WEEK, OWN | {"TASK": 15, "DEBUGGING": 32}))
    assert stability.divergence is not None
    assert stability.divergence > MAX_DIVERGENCE
    assert not stability.is_fallback


def test_many_own_corrections_are_a_fallback() -> None:
    stability = own_weeks(own_week(WEEK - 1, OWN, corrected=1), own_week(WEEK, OWN, corrected=15))
    assert stability.reasons == ("corrections",)
    assert "15 of 70 turns corrected this week, 1 of 70 last week" in describe_fallback(stability)


def test_nothing_is_decided_with_few_own_turns() -> None:
    few = own_week(WEEK, {"LEARNING": MIN_WEEK_TURNS - 1}, corrected=MIN_WEEK_TURNS - 1)
    assert not own_weeks(own_week(WEEK - 1, OWN), few).is_fallback
    assert not own_weeks(few, own_week(WEEK, OWN)).is_fallback


def test_turns_of_other_weeks_are_not_compared() -> None:
    assert not own_weeks(own_week(WEEK - 2, OWN), own_week(WEEK, {"LEARNING": 70})).is_fallback


def test_warning_has_the_figures_of_each_reason() -> None:
    said = describe_fallback(two_weeks(EVEN, TASKS, corrected=(2, 40)))
    assert "40 of 400 users corrected" in said
    assert "2 of 400 last week" in said
    assert "nats" in said
