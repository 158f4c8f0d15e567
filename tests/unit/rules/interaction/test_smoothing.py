"""A turn's mode among those of the turns before it."""

import pytest

from agents.rules.interaction.smoothing import HIGH_CONFIDENCE, SWITCHING_CONFIDENCE, smooth_interaction
from agents.rules.interaction.voting import MIN_MODE_CONFIDENCE
from schemas.interaction import INTERACTION_MODES, Interaction, InteractionMode


def said(*modes: InteractionMode) -> list[Interaction]:
    return [Interaction(mode=mode, confidence=0.9) for mode in modes]


def now(mode: InteractionMode, confidence: float) -> Interaction:
    return Interaction(mode=mode, confidence=confidence)


def test_the_first_turn_stays_as_it_is() -> None:
    assert smooth_interaction(now("TASK", 0.8), []) == now("TASK", 0.8)


@pytest.mark.parametrize("before", INTERACTION_MODES)
@pytest.mark.parametrize("mode", INTERACTION_MODES)
def test_a_confident_answer_is_never_overruled_by_a_steady_past(mode: InteractionMode, before: InteractionMode) -> None:
    answer = smooth_interaction(now(mode, MIN_MODE_CONFIDENCE), said(before, before, before))
    assert answer.mode == mode
    assert answer.confidence >= MIN_MODE_CONFIDENCE


def test_turns_of_the_same_mode_raise_the_confidence_and_others_lower_it() -> None:
    alone = now("TASK", 0.8)
    assert smooth_interaction(alone, said("TASK", "TASK", "TASK")).confidence > 0.8
    assert smooth_interaction(alone, said("LEARNING", "LEARNING", "LEARNING")).confidence < 0.8


def test_a_steady_past_lifts_an_answer_that_was_near_the_threshold() -> None:
    assert smooth_interaction(now("DEBUGGING", 0.68), said("DEBUGGING", "DEBUGGING", "DEBUGGING")).mode == "DEBUGGING"
    assert smooth_interaction(now("DEBUGGING", 0.55), said("DEBUGGING", "DEBUGGING", "DEBUGGING")).mode == "GENERAL"


def test_only_three_turns_before_count() -> None:
    old = said("LEARNING", "LEARNING", "LEARNING")
    recent = said("TASK", "TASK", "TASK")
    assert smooth_interaction(now("TASK", 0.75), old + recent) == smooth_interaction(now("TASK", 0.75), recent)


def test_frequent_switching_makes_general_what_is_not_highly_confident() -> None:
    restless = said("TASK", "LEARNING", "DEBUGGING")
    assert smooth_interaction(now("TASK", SWITCHING_CONFIDENCE - 0.01), restless).mode == "GENERAL"
    assert smooth_interaction(now("TASK", 0.95), restless).mode == "TASK"


def test_thanks_in_between_are_no_switching() -> None:
    assert smooth_interaction(now("LEARNING", 0.71), said("TASK", "GENERAL", "TASK")).mode == "LEARNING"


def test_an_unstable_deployment_keeps_only_what_is_highly_confident() -> None:
    assert smooth_interaction(now("TASK", HIGH_CONFIDENCE - 0.01), [], unstable=True).mode == "GENERAL"
    assert smooth_interaction(now("TASK", HIGH_CONFIDENCE), [], unstable=True).mode == "TASK"


def test_below_the_threshold_it_is_general_with_that_confidence() -> None:
    assert smooth_interaction(now("TASK", 0.6), []) == now("GENERAL", 0.6)


def test_a_confidence_never_leaves_its_range() -> None:
    assert smooth_interaction(now("TASK", 1.0), said("TASK", "TASK", "TASK")).confidence == 1.0
    assert smooth_interaction(now("TASK", 0.0), said("LEARNING", "LEARNING", "LEARNING")).confidence == 0.0
