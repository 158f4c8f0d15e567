"""Votes of the classifier, the intent table and a language model."""

import numpy as np
import pytest
from modestream_client.vocabulary import InteractionMode

from agents.rules.interaction.stability import (
    HIGH_CONFIDENCE,
    MIN_MODE_CONFIDENCE,
    SWITCHING_CONFIDENCE,
    LeadingInteraction,
    apply_threshold,
    given_interaction,
    interaction_by_intent,
    pool_votes,
    smooth_interaction,
)
from schemas.state.interaction import INTERACTION_MODES, Interaction
from tests.builders.taxonomies import SHIPPED


def probabilities_of(mode: InteractionMode, confidence: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    rest = (1 - confidence) / (len(INTERACTION_MODES) - 1)
    return np.array([confidence if each == mode else rest for each in INTERACTION_MODES])


EVEN = probabilities_of("TASK", 0.2)


def model_vote(mode: InteractionMode, confidence: float) -> Interaction:
    return Interaction(mode=mode, confidence=confidence)


@pytest.mark.parametrize("mode", INTERACTION_MODES)
def test_classifier_alone_keeps_its_confidence(mode: InteractionMode) -> None:
    assert apply_threshold(pool_votes(probabilities_of(mode, 0.9), None, None)) == model_vote(mode, 0.9)


def test_below_the_threshold_the_answer_is_general_with_its_probability() -> None:
    leading = pool_votes(probabilities_of("TASK", 0.6), None, None)
    assert leading.mode == "TASK"
    assert leading.confidence == 0.6
    assert leading.general == 0.1
    assert apply_threshold(leading) == model_vote("GENERAL", 0.1)


def test_answer_at_the_threshold_is_kept() -> None:
    leading = LeadingInteraction(mode="TASK", confidence=MIN_MODE_CONFIDENCE, general=0.1)
    assert apply_threshold(leading) == model_vote("TASK", MIN_MODE_CONFIDENCE)


@pytest.mark.parametrize(
    ("mode", "intent", "answer"),
    [
        ("LEARNING", "debug", "LEARNING"),
        (None, "debug", "DEBUGGING"),
        (None, "juggle", "GENERAL"),
        (None, "", "GENERAL"),
        ("TASK", None, "TASK"),
    ],
)
def test_interaction_mode_of_the_caller_wins_over_its_intent(
    mode: InteractionMode | None, intent: str | None, answer: InteractionMode
) -> None:
    assert given_interaction(mode, intent, SHIPPED) == model_vote(answer, 1.0)


def test_caller_without_mode_and_intent_decides_nothing() -> None:
    assert given_interaction(None, None, SHIPPED) is None


def test_intent_table_alone_answers_confidently_or_with_general() -> None:
    found = interaction_by_intent("Explain the difference between TCP and UDP", SHIPPED)
    none = interaction_by_intent("the tea", SHIPPED)
    assert found.mode == "LEARNING"
    assert found.confidence >= MIN_MODE_CONFIDENCE
    assert none.mode == "GENERAL"
    assert 0 < none.confidence < MIN_MODE_CONFIDENCE


def test_model_without_confidence_is_ignored() -> None:
    alone = apply_threshold(pool_votes(probabilities_of("TASK", 0.8), None, None))
    assert apply_threshold(pool_votes(probabilities_of("TASK", 0.8), None, model_vote("DEBUGGING", 0.0))) == alone
    assert apply_threshold(pool_votes(probabilities_of("TASK", 0.8), None, model_vote("DEBUGGING", 0.1))) == alone


def test_confident_model_decides_for_an_unsure_classifier() -> None:
    assert apply_threshold(pool_votes(EVEN, None, model_vote("DEBUGGING", 0.9))) == model_vote("DEBUGGING", 0.9)
    assert (
        apply_threshold(pool_votes(probabilities_of("LEARNING", 0.4), None, model_vote("DEBUGGING", 0.9))).mode
        == "DEBUGGING"
    )


def test_agreeing_votes_raise_confidence() -> None:
    alone = apply_threshold(pool_votes(probabilities_of("TASK", 0.8), None, None)).confidence
    assert apply_threshold(pool_votes(probabilities_of("TASK", 0.8), None, model_vote("TASK", 0.8))).confidence > alone
    assert pool_votes(probabilities_of("TASK", 0.8), None, model_vote("LEARNING", 0.6)).confidence < alone


def test_certain_model_does_not_outvote_a_surer_classifier() -> None:
    assert pool_votes(probabilities_of("TASK", 0.99), None, model_vote("LEARNING", 1.0)).mode == "TASK"


def test_intent_shifts_the_confidence() -> None:
    alone = apply_threshold(pool_votes(probabilities_of("TASK", 0.8), None, None)).confidence
    assert apply_threshold(pool_votes(probabilities_of("TASK", 0.8), "TASK", None)).confidence > alone
    assert apply_threshold(pool_votes(probabilities_of("TASK", 0.8), "DEBUGGING", None)).confidence < alone
    assert apply_threshold(pool_votes(probabilities_of("TASK", 0.8), "DEBUGGING", None)).mode == "TASK"


def test_uninformative_intent_changes_nothing() -> None:
    assert apply_threshold(pool_votes(probabilities_of("TASK", 0.8), "GENERAL", None)) == apply_threshold(
        pool_votes(probabilities_of("TASK", 0.8), None, None)
    )


def test_zero_probabilities_keep_the_result_finite() -> None:
    assert (
        apply_threshold(pool_votes(probabilities_of("TASK", 1.0), "DEBUGGING", model_vote("LEARNING", 1.0))).mode
        == "TASK"
    )


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


def test_below_the_threshold_a_smoothed_answer_is_general_with_its_probability() -> None:
    assert smooth_interaction(current("TASK", 0.6), []) == Interaction(mode="GENERAL", confidence=0.1)
    unstable = smooth_interaction(current("TASK", 0.8), [], is_unstable=True)
    assert unstable.mode == "GENERAL"
    assert unstable.confidence == pytest.approx(0.05)


def test_confidence_stays_in_range() -> None:
    assert smooth_interaction(current("TASK", 1.0), history_of("TASK", "TASK", "TASK")).confidence == 1.0
    unsure = LeadingInteraction(mode="TASK", confidence=0.0, general=0.0)
    assert smooth_interaction(unsure, history_of("LEARNING", "LEARNING", "LEARNING")).confidence == 0.0
