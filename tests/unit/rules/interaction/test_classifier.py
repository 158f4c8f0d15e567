"""The shipped classifier and its file format."""

import json
from pathlib import Path

import numpy as np
import pytest

from agents.rules.interaction.classifier import MODEL_FILE_MAGIC, InteractionClassifier
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


@pytest.mark.parametrize(
    "text",
    [
        "We moved the piano on Sunday. It took five of us and a lot of swearing.",
        "My sister's back from Oslo, with a cold and two suitcases of knitting wool.",
        "Grandpa told the whole table how he'd met her on a night train, and nobody ate.",
        "Gestern war die Feier, Opa hat getanzt und ist dann im Sessel eingeschlafen.",
    ],
)
def test_telling_is_no_exploration(classifier: InteractionClassifier, text: str) -> None:
    shares = dict(zip(INTERACTION_MODES, classifier.probabilities(text, ZERO_VECTOR).tolist(), strict=True))
    assert shares["EXPLORATION"] < 0.5 < shares["GENERAL"]


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
