"""The shipped classifier and its file format."""

import json
from pathlib import Path

import numpy as np
import pytest

from agents.rules.interaction.classifier import MODEL_FILE_MAGIC, InteractionClassifier, pool_confidences
from agents.rules.interaction.decision import MIN_MODE_CONFIDENCE
from schemas.state.interaction import INTERACTION_MODES

FILE = Path(__file__).parents[4] / "agents" / "data" / "interaction_model.bin"
ZERO_VECTOR = np.zeros(384, np.float32)


@pytest.fixture(scope="module")
def classifier() -> InteractionClassifier:
    return InteractionClassifier.loads(FILE.read_bytes())


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("Add pagination to the user list, 20 rows a page, please", "TASK"),
        ("Traceback (most recent call last):\n  File \"a.py\", line 3\nKeyError: 'id'", "DEBUGGING"),
        ("Explain the difference between TCP and UDP", "LEARNING"),
        ("I'm not sure whether we should move, maybe we could stay. What do you think?", "EXPLORATION"),
        ("thanks, good night!", "GENERAL"),
        ("Übersetze diesen Satz bitte ins Englische", "TASK"),
        ("¿Cuál es la diferencia entre ser y estar?", "LEARNING"),
        ("merci beaucoup, à demain !", "GENERAL"),
    ],
)
def test_words_alone_decide_clear_cases(classifier: InteractionClassifier, text: str, mode: str) -> None:
    assert INTERACTION_MODES[int(classifier.probabilities(text, ZERO_VECTOR).argmax())] == mode


@pytest.mark.parametrize("text", ["", " ", "?", "\ud800", "\x00", "a" * 32_768, "好" * 32_768, "\n" * 32_768])
def test_any_text_gives_probabilities(classifier: InteractionClassifier, text: str) -> None:
    shares = classifier.probabilities(text, ZERO_VECTOR)
    assert shares.shape == (len(INTERACTION_MODES),)
    assert (shares >= 0).all()
    assert shares.sum() == pytest.approx(1)


def test_vector_changes_probabilities(classifier: InteractionClassifier) -> None:
    one, other = (classifier.probabilities("the thing with the wheel", at) for at in np.eye(384, dtype=np.float32)[:2])
    assert not np.allclose(one, other)


def test_vector_of_another_shape_is_refused(classifier: InteractionClassifier) -> None:
    with pytest.raises(ValueError, match="768"):
        classifier.probabilities("a", np.zeros(768, np.float32))


def test_model_file_is_small_and_described() -> None:
    data = FILE.read_bytes()
    assert len(data) < 2_000_000
    assert json.loads(data[len(MODEL_FILE_MAGIC) : data.index(b"\n", len(MODEL_FILE_MAGIC))])["modes"] == list(
        INTERACTION_MODES
    )


def test_malformed_files_are_refused() -> None:
    data = FILE.read_bytes()
    for damaged in (b"", b"{}\n", data[1:], data + b"x", data[:-1], data.replace(b"EXPLORATION", b"EXPLOSIONS!", 1)):
        with pytest.raises(ValueError, match=r"model|buffer|JSON|Expecting|subsection"):
            InteractionClassifier.loads(damaged)


def test_pool_starts_at_the_threshold_and_keeps_the_order() -> None:
    confidences = np.linspace(0.21, 0.999, 200)
    rest = (1 - confidences) / 4
    said = pool_confidences(np.stack([confidences, rest, rest, rest, rest], axis=1), 0.5, 0.9)
    assert said.sum(axis=1) == pytest.approx(np.ones(200))
    assert (said.argmax(axis=1) == 0).all()
    assert (np.diff(said[:, 0]) >= 0).all()
    assert ((said[:, 0] >= MIN_MODE_CONFIDENCE) == (confidences >= 0.5)).all()
    assert said[-1, 0] == pytest.approx(0.999)
