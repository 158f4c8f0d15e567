"""Drift and error spikes of a deployment's classifications."""

from agents.rules.interaction.decision import (
    DRIFT_WINDOW,
    MAX_DIVERGENCE,
    MIN_ERRORS,
    has_drifted,
    has_error_spike,
    kl_divergence,
)
from schemas.state.interaction import InteractionMode

EVEN: list[InteractionMode] = ["TASK", "EXPLORATION", "DEBUGGING", "LEARNING", "GENERAL"] * (DRIFT_WINDOW // 5)
TASKS: list[InteractionMode] = ["TASK"] * DRIFT_WINDOW


def test_the_same_mix_has_not_drifted() -> None:
    assert not has_drifted(EVEN, EVEN)


def test_another_mix_has_drifted_even_with_a_new_mode() -> None:
    assert has_drifted(TASKS, EVEN)
    assert has_drifted(EVEN, TASKS)


def test_no_drift_before_both_windows_are_full() -> None:
    assert not has_drifted(TASKS[1:], EVEN)
    assert not has_drifted(TASKS, EVEN[1:])


def test_only_the_last_window_of_a_sequence_counts() -> None:
    assert not has_drifted(TASKS + EVEN, TASKS + EVEN)


def test_small_change_is_no_drift() -> None:
    changed = EVEN[:-25] + TASKS[:25]
    assert 0 < kl_divergence(changed, EVEN) < MAX_DIVERGENCE
    assert not has_drifted(changed, EVEN)


def test_error_rate_above_twice_the_baseline_is_a_spike() -> None:
    assert has_error_spike(21, 500, 10, 500)
    assert not has_error_spike(20, 500, 10, 500)


def test_few_errors_are_no_spike() -> None:
    assert not has_error_spike(MIN_ERRORS - 1, 5, 0, 500)
    assert has_error_spike(MIN_ERRORS, 5, 0, 500)


def test_no_baseline_gives_no_spike() -> None:
    assert not has_error_spike(9, 10, 0, 0)
