"""When a deployment's classifications are no longer trusted."""

from agents.rules.interaction.drift import (
    DRIFT_WINDOW,
    MAX_DIVERGENCE,
    MIN_ERRORS,
    has_drifted,
    has_error_spike,
    kl_divergence,
)
from schemas.interaction import InteractionMode

EVEN: list[InteractionMode] = ["TASK", "EXPLORATION", "DEBUGGING", "LEARNING", "GENERAL"] * (DRIFT_WINDOW // 5)
TASKS: list[InteractionMode] = ["TASK"] * DRIFT_WINDOW


def test_the_same_mix_has_not_drifted() -> None:
    assert not has_drifted(EVEN, EVEN)


def test_another_mix_has_drifted_even_where_a_mode_is_new() -> None:
    assert has_drifted(TASKS, EVEN)
    assert has_drifted(EVEN, TASKS)


def test_nothing_drifts_before_both_windows_are_full() -> None:
    assert not has_drifted(TASKS[1:], EVEN)
    assert not has_drifted(TASKS, EVEN[1:])


def test_only_the_windows_count_of_longer_sequences() -> None:
    assert not has_drifted(TASKS + EVEN, TASKS + EVEN)


def test_a_small_change_is_no_drift() -> None:
    changed = EVEN[:-25] + TASKS[:25]
    assert 0 < kl_divergence(changed, EVEN) < MAX_DIVERGENCE
    assert not has_drifted(changed, EVEN)


def test_errors_above_twice_the_baseline_alarm() -> None:
    assert has_error_spike(21, 500, 10, 500)
    assert not has_error_spike(20, 500, 10, 500)


def test_few_errors_alarm_nobody_whatever_the_baseline() -> None:
    assert not has_error_spike(MIN_ERRORS - 1, 5, 0, 500)
    assert has_error_spike(MIN_ERRORS, 5, 0, 500)


def test_without_a_baseline_there_is_nothing_to_compare() -> None:
    assert not has_error_spike(9, 10, 0, 0)
