"""Smoothing of interaction modes by earlier turns."""

import pytest
from modestream_client.vocabulary import InteractionMode

from agents.rules.interaction.decision import (
    HIGH_CONFIDENCE,
    MIN_MODE_CONFIDENCE,
    SWITCHING_CONFIDENCE,
    LeadingInteraction,
    smooth_interaction,
)
from schemas.state.interaction import INTERACTION_MODES, Interaction


def history_of(*modes: InteractionMode) -> list[Interaction]:
    return [Interaction(mode=mode, confidence=0.9) for mode in modes]


def current(mode: InteractionMode, confidence: float) -> LeadingInteraction:
    general = confidence if mode == "GENERAL" else (1 - confidence) / 4
    return LeadingInteraction(mode=mode, confidence=confidence, general=general)


def test_first_turn_is_unchanged() -> None:
    assert smooth_interaction(current("TASK", 0.8), []) == Interaction(mode="TASK", confidence=0.8)


@pytest.mark.parametrize("before", INTERACTION_MODES)
@pytest.mark.parametrize("mode", INTERACTION_MODES)
def test_history_never_overrules_a_confident_answer(mode: InteractionMode, before: InteractionMode) -> None:
    answer = smooth_interaction(current(mode, MIN_MODE_CONFIDENCE), history_of(before, before, before))
    assert answer.mode == mode
    assert answer.confidence >= MIN_MODE_CONFIDENCE


def test_agreement_raises_and_disagreement_lowers_confidence() -> None:
    alone = current("TASK", 0.8)
    assert smooth_interaction(alone, history_of("TASK", "TASK", "TASK")).confidence > 0.8
    assert smooth_interaction(alone, history_of("LEARNING", "LEARNING", "LEARNING")).confidence < 0.8


def test_history_lifts_an_answer_near_the_threshold() -> None:
    assert (
        smooth_interaction(current("DEBUGGING", 0.68), history_of("DEBUGGING", "DEBUGGING", "DEBUGGING")).mode
        == "DEBUGGING"
    )
    assert (
        smooth_interaction(current("DEBUGGING", 0.55), history_of("DEBUGGING", "DEBUGGING", "DEBUGGING")).mode
        == "GENERAL"
    )


def test_only_the_last_three_turns_count() -> None:
    old = history_of("LEARNING", "LEARNING", "LEARNING")
    recent = history_of("TASK", "TASK", "TASK")
    assert smooth_interaction(current("TASK", 0.75), old + recent) == smooth_interaction(current("TASK", 0.75), recent)


def test_frequent_switching_raises_the_threshold() -> None:
    restless = history_of("TASK", "LEARNING", "DEBUGGING")
    assert smooth_interaction(current("TASK", SWITCHING_CONFIDENCE - 0.01), restless).mode == "GENERAL"
    assert smooth_interaction(current("TASK", 0.95), restless).mode == "TASK"


def test_general_turns_are_no_switches() -> None:
    assert smooth_interaction(current("LEARNING", 0.71), history_of("TASK", "GENERAL", "TASK")).mode == "LEARNING"


def test_unstable_deployment_raises_the_threshold() -> None:
    assert smooth_interaction(current("TASK", HIGH_CONFIDENCE - 0.01), [], is_unstable=True).mode == "GENERAL"
    assert smooth_interaction(current("TASK", HIGH_CONFIDENCE), [], is_unstable=True).mode == "TASK"


def test_below_the_threshold_the_answer_is_general_with_its_probability() -> None:
    assert smooth_interaction(current("TASK", 0.6), []) == Interaction(mode="GENERAL", confidence=0.1)
    unstable = smooth_interaction(current("TASK", 0.8), [], is_unstable=True)
    assert unstable.mode == "GENERAL"
    assert unstable.confidence == pytest.approx(0.05)


def test_confidence_stays_in_range() -> None:
    assert smooth_interaction(current("TASK", 1.0), history_of("TASK", "TASK", "TASK")).confidence == 1.0
    unsure = LeadingInteraction(mode="TASK", confidence=0.0, general=0.0)
    assert smooth_interaction(unsure, history_of("LEARNING", "LEARNING", "LEARNING")).confidence == 0.0
