"""Votes of the classifier, the intent table and a language model."""

import numpy as np
import pytest

from agents.rules.interaction.decision import MIN_MODE_CONFIDENCE, apply_threshold, pool_votes
from schemas.state.interaction import INTERACTION_MODES, Interaction, InteractionMode


def probabilities_of(mode: InteractionMode, confidence: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    rest = (1 - confidence) / (len(INTERACTION_MODES) - 1)
    return np.array([confidence if one == mode else rest for one in INTERACTION_MODES])


EVEN = probabilities_of("TASK", 0.2)


def model_vote(mode: InteractionMode, confidence: float) -> Interaction:
    return Interaction(mode=mode, confidence=confidence)


@pytest.mark.parametrize("mode", INTERACTION_MODES)
def test_classifier_alone_keeps_its_confidence(mode: InteractionMode) -> None:
    assert apply_threshold(pool_votes(probabilities_of(mode, 0.9), None, None)) == model_vote(mode, 0.9)


def test_below_the_threshold_the_mode_is_general() -> None:
    assert apply_threshold(pool_votes(probabilities_of("TASK", 0.6), None, None)) == model_vote("GENERAL", 0.6)
    assert pool_votes(probabilities_of("TASK", 0.6), None, None) == model_vote("TASK", 0.6)
    assert apply_threshold(model_vote("TASK", MIN_MODE_CONFIDENCE)).mode == "TASK"


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
    assert apply_threshold(pool_votes(probabilities_of("TASK", 0.8), "task", None)).confidence > alone
    assert apply_threshold(pool_votes(probabilities_of("TASK", 0.8), "fix", None)).confidence < alone
    assert apply_threshold(pool_votes(probabilities_of("TASK", 0.8), "fix", None)).mode == "TASK"


@pytest.mark.parametrize("intent", ["", "default", "general", "something else"])
def test_uninformative_intent_changes_nothing(intent: str) -> None:
    assert apply_threshold(pool_votes(probabilities_of("TASK", 0.8), intent, None)) == apply_threshold(
        pool_votes(probabilities_of("TASK", 0.8), None, None)
    )


def test_zero_probabilities_keep_the_result_finite() -> None:
    assert (
        apply_threshold(pool_votes(probabilities_of("TASK", 1.0), "debug", model_vote("LEARNING", 1.0))).mode == "TASK"
    )
