"""The answers of passages: those of short texts together, each as if it were alone."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from streams.adapters.embedding.inference.fastembed_model import FastembedModel, ModelOutput, PreparedText
from streams.adapters.embedding.inference.local_model import LocalModel
from streams.adapters.embedding.process import embedding_server, frames
from streams.adapters.embedding.process.embedding_server import MAX_HELD_ANSWERS, MAX_PREPARED_CHARS, PassageAnswers
from tests.builders.tiny_models import write_tiny_model

TEXTS = ("the red house", "cat", "", "deploy on target", "house " * MAX_PREPARED_CHARS)


class FailingModel(FastembedModel):
    """Fails over `bad` when the model runs, and over `odd` when the vectors of several passages are made."""

    def run(self, prepared: PreparedText) -> ModelOutput:
        if prepared.text == "bad":
            raise ValueError("bad")
        output = super().run(prepared)
        return ModelOutput(prepared, output.states[:, :3]) if prepared.text == "odd" else output


class Written:
    """What was written, by number, and in how many pieces."""

    def __init__(self) -> None:
        self.answers: dict[int, tuple[int, bytes]] = {}
        self.pieces = 0
        self.noted: Counter[str] = Counter()
        self.noted_at_writes: list[set[str]] = []

    @contextmanager
    def note(self, content: bytes) -> Iterator[None]:
        text = frames.decode_request(content)[1]
        self.noted[text] += 1
        yield
        self.noted[text] -= 1

    def __call__(self, data: bytes) -> None:
        self.pieces += 1
        self.noted_at_writes.append(set(+self.noted))
        while data:
            number, kind, length = frames.decode_header(data[: frames.FRAME_HEADER.size])
            start = frames.FRAME_HEADER.size
            assert number not in self.answers
            self.answers[number] = kind, data[start : start + length]
            data = data[start + length :]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> FastembedModel:
    folder: Path = write_tiny_model(tmp_path_factory.mktemp("model") / "tiny", 24)
    return FailingModel.load(LocalModel("tiny", folder, 24, "fp32"))


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no run count as long on a busy machine."""
    monkeypatch.setattr(embedding_server, "MAX_HELD_RUN_S", 60.0)


def answers_of(model: FastembedModel, written: Written) -> PassageAnswers:
    return PassageAnswers(model, written, written.note)


def passages(answers: PassageAnswers, *texts: str, alone: bool = False) -> list[Callable[[], None]]:
    return [
        answers.expect(number, frames.encode_request("", text), alone=alone) for number, text in enumerate(texts, 1)
    ]


def run_all(model: FastembedModel, *texts: str, alone: bool = False) -> Written:
    written = Written()
    for passage in passages(answers_of(model, written), *texts, alone=alone):
        passage()
    return written


def test_each_passage_has_the_very_vectors_that_it_has_alone(model: FastembedModel) -> None:
    together = run_all(model, *TEXTS)
    assert [together.answers[number] for number in range(1, len(TEXTS) + 1)] == [
        run_all(model, text).answers[1] for text in TEXTS
    ]


def test_answers_are_those_of_the_model(model: FastembedModel) -> None:
    _, content = run_all(model, *TEXTS).answers[1]
    expected = model.passage(TEXTS[0])
    assert np.array_equal(frames.decode_vectors(content).pooled, expected.pooled)
    assert np.array_equal(frames.decode_vectors(content).tokens, expected.tokens)


def test_answers_wait_while_others_do_and_go_in_one_piece(model: FastembedModel) -> None:
    written = Written()
    first, second, third = passages(answers_of(model, written), "red", "cat", "house")
    first()
    second()
    assert written.pieces == 0
    third()
    assert written.pieces == 1
    assert sorted(written.answers) == [1, 2, 3]


def test_no_more_than_some_answers_wait(model: FastembedModel) -> None:
    written = Written()
    for passage in passages(answers_of(model, written), *["cat"] * (MAX_HELD_ANSWERS + 1))[:MAX_HELD_ANSWERS]:
        passage()
    assert len(written.answers) == MAX_HELD_ANSWERS


def test_a_long_run_holds_nothing_back(model: FastembedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    written = Written()
    first, second, _ = passages(answers_of(model, written), "red", "cat", "house")
    first()
    monkeypatch.setattr(embedding_server, "MAX_HELD_RUN_S", 0.0)
    second()
    assert sorted(written.answers) == [1, 2]


def test_no_answer_waits_for_the_run_of_a_long_text(model: FastembedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    written, answered = Written(), dict[str, list[int]]()
    run = model.run

    def run_and_look(prepared: PreparedText) -> ModelOutput:
        answered[prepared.text] = sorted(written.answers)
        return run(prepared)

    monkeypatch.setattr(model, "run", run_and_look)
    first, long, _ = passages(answers_of(model, written), "red", TEXTS[-1], "cat")
    first()
    long()
    assert answered == {"red": [], TEXTS[-1]: [1]}


def test_texts_are_noted_while_their_answers_are_made_and_not_while_they_are_held(model: FastembedModel) -> None:
    written = Written()
    first, second, third = passages(answers_of(model, written), "red", "cat", "house")
    first()
    second()
    assert not +written.noted
    third()
    assert written.noted_at_writes == [{"red", "cat", "house"}]
    assert not +written.noted


def test_a_suspect_is_answered_at_once(model: FastembedModel) -> None:
    written = Written()
    suspect, _ = passages(answers_of(model, written), "red", "cat", alone=True)
    suspect()
    assert sorted(written.answers) == [1]


def test_a_text_that_fails_is_refused_alone(model: FastembedModel) -> None:
    kinds = {number: kind for number, (kind, _) in run_all(model, "red", "bad", "odd", "cat").answers.items()}
    assert kinds == {1: frames.VECTORS, 2: frames.ERROR, 3: frames.ERROR, 4: frames.VECTORS}
