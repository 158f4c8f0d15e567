"""Training of the interaction classifier is deterministic, and the shipped model matches the examples."""

import json
from pathlib import Path

import numpy as np
import pytest

from agents.rules.cues.intents import intent_of
from agents.rules.interaction.classifier import InteractionClassifier
from agents.rules.interaction.stability import GENERAL_WITHOUT_INTENT, INTENT_PRECISION
from schemas.state.interaction import INTERACTION_MODES
from tests.builders.taxonomies import SHIPPED
from training.interaction.calibration import best_temperature, expected_error, reliability
from training.interaction.examples import (
    CUES,
    HELD_OUT,
    HELD_OUT_CONVERSATIONS,
    HELD_OUT_HARD,
    HELD_OUT_SESSIONS,
    Turn,
    digest,
    read_turns,
    training_turns,
)
from training.interaction.training import train_classifier
from training.interaction.validation import answer_confidences, apply_threshold, confusion, scores
from training.interaction.vectors import Vectors

MODEL = Path(__file__).parents[3] / "agents" / "data" / "interaction_model.bin"


def vectors(turns: list[Turn]) -> Vectors:
    return (np.random.default_rng(7).standard_normal((len(turns), 384)) / 20).astype(np.float32)


@pytest.fixture(scope="module")
def turns() -> list[Turn]:
    return [turn for turn in training_turns() if turn.source == "software"][:60]


@pytest.fixture(scope="module")
def model(turns: list[Turn]) -> bytes:
    return train_classifier(turns, vectors(turns), CUES.read_text()).model


def test_same_examples_give_same_bytes(turns: list[Turn], model: bytes) -> None:
    assert train_classifier(turns, vectors(turns), CUES.read_text()).model == model
    assert InteractionClassifier.loads(model).about["data_sha256"] == digest(turns, CUES.read_text())


def test_model_file_predicts_its_training_examples(turns: list[Turn], model: bytes) -> None:
    made = vectors(turns)
    classifier = InteractionClassifier.loads(model)
    said = [classifier.probabilities(turn.text, vector).argmax() for turn, vector in zip(turns, made, strict=True)]
    right = [INTERACTION_MODES[mode] == turn.mode for mode, turn in zip(said, turns, strict=True)]
    assert np.mean(right) > 0.95, "it has learnt these very turns"


def test_shipped_model_was_trained_on_these_examples() -> None:
    about = InteractionClassifier.loads(MODEL.read_bytes()).about
    assert about["data_sha256"] == digest(training_turns(), CUES.read_text()), "run python -m training.interaction"


def test_at_least_600_examples_and_none_is_held_out() -> None:
    turns, held_out = training_turns(), read_turns([HELD_OUT, HELD_OUT_CONVERSATIONS, HELD_OUT_SESSIONS, HELD_OUT_HARD])
    assert len(turns) >= 600
    long = {turn.text.casefold() for turn in turns if len(turn.text) > 25}
    assert not long & {turn.text.casefold() for turn in held_out}
    assert not {turn.conversation for turn in turns} & {turn.conversation for turn in held_out}


def test_every_text_has_one_label() -> None:
    labels: dict[str, set[str]] = {}
    for turn in training_turns():
        labels.setdefault(turn.text.casefold().strip(), set()).add(turn.mode)
    assert [text for text, modes in labels.items() if len(modes) > 1 and len(text) > 25] == []


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([{"id": "a", "language": "en", "turns": [{"role": "user", "text": "x", "mode": "JOKE"}]}], "unknown mode"),
        ([{"id": "a", "language": "en", "turns": []}] * 2, "two conversations have the id"),
    ],
)
def test_invalid_examples_are_rejected(tmp_path: Path, lines: list[dict[str, object]], reason: str) -> None:
    file = tmp_path / "examples.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(ValueError, match=reason):
        read_turns([file])


def test_turns_know_the_modes_of_earlier_user_turns(tmp_path: Path) -> None:
    said = [
        {"role": "user", "text": "x", "mode": "TASK"},
        {"role": "assistant", "text": "y"},
        {"role": "user", "text": "z", "mode": "GENERAL"},
    ]
    file = tmp_path / "examples.jsonl"
    file.write_text(json.dumps({"id": "a", "language": "en", "turns": said}))
    assert [turn.before for turn in read_turns([file])] == [(), ("TASK",)]


def test_scores_apply_the_confidence_threshold() -> None:
    shares = np.array([[0.9, 0.1, 0, 0, 0], [0.6, 0.4, 0, 0, 0], [0.1, 0.9, 0, 0, 0]])
    modes = np.array([0, 0, 1])
    answered = apply_threshold(shares)
    assert answered.tolist() == [0, 4, 1]
    assert scores(answered, modes)[0].precision == 1.0
    assert scores(answered, modes)[0].recall == 0.5
    assert scores(answered, modes)[0].f1 == pytest.approx(2 / 3)
    assert confusion(answered, modes)[0].tolist() == [1, 0, 0, 0, 1]


def test_confidence_of_a_fallback_is_the_probability_of_general() -> None:
    shares = np.array([[0.9, 0.1, 0, 0, 0], [0.6, 0.1, 0.05, 0.05, 0.2]])
    assert answer_confidences(shares).tolist() == [0.9, 0.2]


def test_calibration_finds_the_temperature() -> None:
    drawn = np.random.default_rng(1)
    true = drawn.dirichlet(np.full(5, 0.5), 4000)
    modes = np.array([drawn.choice(5, p=row) for row in true])
    assert best_temperature(np.log(true + 1e-9) / 2, modes) == pytest.approx(2.0, abs=0.2)
    confidences, right = true.max(axis=1), true.argmax(axis=1) == modes
    assert expected_error(confidences, right) < 0.03
    assert sum(count for _, _, count, _, _ in reliability(confidences, right)) == 4000


def test_answers_of_a_calibrated_classifier_are_calibrated() -> None:
    drawn = np.random.default_rng(2)
    true = drawn.dirichlet(np.full(5, 0.5), 4000)
    modes = np.array([drawn.choice(5, p=row) for row in true])
    assert expected_error(answer_confidences(true), apply_threshold(true) == modes) < 0.03


def test_intent_table_has_the_precision_it_reports() -> None:
    found = [(intent, turn.mode) for turn in training_turns() if (intent := intent_of(turn.text)) is not None]
    right = np.mean([SHIPPED.mode_of(intent) == mode for intent, mode in found])
    without = np.mean([turn.mode == "GENERAL" for turn in training_turns() if intent_of(turn.text) is None])
    assert right == pytest.approx(INTENT_PRECISION, abs=0.02)
    assert without == pytest.approx(GENERAL_WITHOUT_INTENT, abs=0.02)
