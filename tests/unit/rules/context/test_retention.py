"""Retention policies of interaction modes."""

import pytest
from modestream_client.vocabulary import InteractionMode

from agents.rules.context.section_candidates import best_answers, is_dropped, prevailing_labels, raise_wanted
from agents.rules.cues.labels import NO_LABELS, SentenceLabel
from schemas.state.interaction import Interaction
from tests.builders.taxonomies import SHIPPED

WISH = SentenceLabel.INSTRUCTION


def said_in(mode: InteractionMode | None, confidence: float = 0.9) -> Interaction | None:
    return None if mode is None else Interaction(mode=mode, confidence=confidence)


@pytest.mark.parametrize(("confidence", "stays"), [(0.7, True), (0.85, False)])
def test_a_mode_drops_turns_of_another_where_that_is_sure(confidence: float, stays: bool) -> None:
    assert is_dropped(SHIPPED.modes["TASK"], NO_LABELS, said_in("EXPLORATION", confidence)) != stays


@pytest.mark.parametrize(
    ("mode", "labels", "interaction_mode", "stays"),
    [
        ("TASK", SentenceLabel.SPECULATION, None, False),
        ("TASK", NO_LABELS, "EXPLORATION", False),
        ("TASK", SentenceLabel.SPECULATION | SentenceLabel.CONSTRAINT, "EXPLORATION", True),
        ("TASK", WISH | SentenceLabel.USER, "EXPLORATION", True),
        ("TASK", WISH | SentenceLabel.ASSISTANT, "EXPLORATION", False),
        ("TASK", NO_LABELS, "DEBUGGING", True),
        ("EXPLORATION", SentenceLabel.CODE, None, False),
        ("EXPLORATION", SentenceLabel.TOOL, None, False),
        ("EXPLORATION", SentenceLabel.SPECULATION, "EXPLORATION", True),
        ("DEBUGGING", SentenceLabel.DONE, None, False),
        ("DEBUGGING", NO_LABELS, "EXPLORATION", False),
        ("DEBUGGING", SentenceLabel.ERROR | SentenceLabel.DONE, None, True),
        ("LEARNING", SentenceLabel.CHANGE, None, False),
        ("LEARNING", SentenceLabel.EXAMPLE | SentenceLabel.TOOL, None, True),
        (
            "GENERAL",
            SentenceLabel.SPECULATION | SentenceLabel.CODE | SentenceLabel.TOOL | SentenceLabel.COURTESY,
            "EXPLORATION",
            True,
        ),
    ],
    ids=str,
)
def test_mode_drops_unwanted_memories(
    mode: InteractionMode, labels: SentenceLabel, interaction_mode: InteractionMode | None, stays: bool
) -> None:
    assert is_dropped(SHIPPED.modes[mode], labels, said_in(interaction_mode)) != stays


@pytest.mark.parametrize(
    ("mode", "labels", "stays"),
    [
        ("LEARNING", NO_LABELS, False),
        ("LEARNING", SentenceLabel.PRINCIPLE, True),
        ("LEARNING", WISH | SentenceLabel.USER, True),
        ("TASK", NO_LABELS, True),
        ("TASK", SentenceLabel.COURTESY, True),
        ("TASK", SentenceLabel.SPECULATION, False),
        ("DEBUGGING", NO_LABELS, True),
    ],
    ids=str,
)
def test_mode_drops_turns_of_the_recent_conversation(mode: InteractionMode, labels: SentenceLabel, stays: bool) -> None:
    assert is_dropped(SHIPPED.modes[mode], labels, said_in("GENERAL"), in_window=True) != stays


@pytest.mark.parametrize(
    ("labels", "interaction_mode", "stays"),
    [
        (SentenceLabel.OPEN_QUESTION, "DEBUGGING", True),
        (SentenceLabel.OPEN_QUESTION, "GENERAL", False),
        (SentenceLabel.COURTESY, "DEBUGGING", False),
    ],
    ids=str,
)
def test_a_turn_said_for_another_purpose_explores_nothing(
    labels: SentenceLabel, interaction_mode: InteractionMode, stays: bool
) -> None:
    assert is_dropped(SHIPPED.modes["TASK"], labels, said_in(interaction_mode)) != stays


@pytest.mark.parametrize(
    ("text", "prevails"),
    [
        ("What if we planted figs?", True),
        ("What if we planted figs? I saw them in Porto. The tram to the harbour leaves at noon.", False),
        ("What if we planted figs and beans behind the shed? Good.", True),
        ("What if we planted figs? " * 20, False),
    ],
    ids=("all", "a third", "most", "long"),
)
def test_a_text_is_of_the_kind_of_most_of_it(text: str, prevails: bool) -> None:
    labels = SentenceLabel.SPECULATION | SentenceLabel.USER
    kept = prevailing_labels(text, labels, SHIPPED.modes["TASK"].drop)
    assert kept == (labels if prevails else SentenceLabel.USER)


def test_a_long_result_of_a_tool_is_one() -> None:
    labels = SentenceLabel.TOOL | SentenceLabel.CODE
    assert prevailing_labels("x = 1; " * 100, labels, SHIPPED.modes["EXPLORATION"].drop) == SentenceLabel.TOOL


@pytest.mark.parametrize(
    ("scores", "answers"),
    [([], 0), ([0.9], 1), ([0.9, 0.5, 0.46, 0.46], 3), ([0.9, 0.45, 0.44], 2), ([0.02, 0.009], 1)],
    ids=str,
)
def test_three_hits_at_most_answer_with_half_of_the_best_score(scores: list[float], answers: int) -> None:
    assert best_answers(dict(enumerate(scores))) == list(range(answers))


def test_wanted_hits_move_up_but_not_to_the_top() -> None:
    hits = [(str(place), NO_LABELS) for place in range(7)]
    hits[6] = ("error", SentenceLabel.ERROR)
    assert raise_wanted(hits, SHIPPED.modes["DEBUGGING"].keep) == ["0", "1", "2", "3", "error", "4", "5"]
