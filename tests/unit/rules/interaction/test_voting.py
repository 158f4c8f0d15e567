"""One answer out of the classifier's, the intent table's and a model's votes."""

import numpy as np
import pytest

from agents.rules.interaction.voting import MIN_MODE_CONFIDENCE, apply_threshold, pool_votes
from schemas.interaction import INTERACTION_MODES, Interaction, InteractionMode


def sure_of(mode: InteractionMode, confidence: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    rest = (1 - confidence) / (len(INTERACTION_MODES) - 1)
    return np.array([confidence if one == mode else rest for one in INTERACTION_MODES])


EVEN = sure_of("TASK", 0.2)


def model(mode: InteractionMode, confidence: float) -> Interaction:
    return Interaction(mode=mode, confidence=confidence)


@pytest.mark.parametrize("mode", INTERACTION_MODES)
def test_the_classifier_alone_decides_with_its_confidence(mode: InteractionMode) -> None:
    assert apply_threshold(pool_votes(sure_of(mode, 0.9), None, None)) == model(mode, 0.9)


def test_below_the_threshold_it_is_general_with_the_confidence_of_what_leads() -> None:
    assert apply_threshold(pool_votes(sure_of("TASK", 0.6), None, None)) == model("GENERAL", 0.6)
    assert pool_votes(sure_of("TASK", 0.6), None, None) == model("TASK", 0.6)
    assert apply_threshold(model("TASK", MIN_MODE_CONFIDENCE)).mode == "TASK"


def test_a_model_without_confidence_counts_nothing() -> None:
    alone = apply_threshold(pool_votes(sure_of("TASK", 0.8), None, None))
    assert apply_threshold(pool_votes(sure_of("TASK", 0.8), None, model("DEBUGGING", 0.0))) == alone
    assert apply_threshold(pool_votes(sure_of("TASK", 0.8), None, model("DEBUGGING", 0.1))) == alone


def test_a_confident_model_decides_where_the_classifier_does_not_know() -> None:
    assert apply_threshold(pool_votes(EVEN, None, model("DEBUGGING", 0.9))) == model("DEBUGGING", 0.9)
    assert apply_threshold(pool_votes(sure_of("LEARNING", 0.4), None, model("DEBUGGING", 0.9))).mode == "DEBUGGING"


def test_votes_that_agree_are_surer_and_votes_that_differ_are_less_sure() -> None:
    alone = apply_threshold(pool_votes(sure_of("TASK", 0.8), None, None)).confidence
    assert apply_threshold(pool_votes(sure_of("TASK", 0.8), None, model("TASK", 0.8))).confidence > alone
    assert pool_votes(sure_of("TASK", 0.8), None, model("LEARNING", 0.6)).confidence < alone


def test_a_model_that_is_wholly_sure_does_not_beat_a_surer_classifier() -> None:
    assert pool_votes(sure_of("TASK", 0.99), None, model("LEARNING", 1.0)).mode == "TASK"


def test_the_intent_table_is_a_hint_in_either_direction() -> None:
    alone = apply_threshold(pool_votes(sure_of("TASK", 0.8), None, None)).confidence
    assert apply_threshold(pool_votes(sure_of("TASK", 0.8), "task", None)).confidence > alone
    assert apply_threshold(pool_votes(sure_of("TASK", 0.8), "fix", None)).confidence < alone
    assert apply_threshold(pool_votes(sure_of("TASK", 0.8), "fix", None)).mode == "TASK"


@pytest.mark.parametrize("intent", ["", "default", "general", "something else"])
def test_an_intent_that_says_nothing_changes_nothing(intent: str) -> None:
    assert apply_threshold(pool_votes(sure_of("TASK", 0.8), intent, None)) == apply_threshold(
        pool_votes(sure_of("TASK", 0.8), None, None)
    )


def test_impossible_modes_of_a_classifier_do_not_break_the_sum() -> None:
    assert apply_threshold(pool_votes(sure_of("TASK", 1.0), "debug", model("LEARNING", 1.0))).mode == "TASK"
