import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schemas.models.vectors import Matrix
from streams.adapters.embedding.inference.fastembed_model import PooledCentre
from streams.adapters.embedding.inference.local_model import read_learned
from streams.adapters.embedding.inference.token_vectors import TokenProjection
from training.projection.components import principal_components
from training.projection.conversations import read_conversations
from training.projection.means import common_means
from training.projection.projection_file import serialise_arrays
from training.projection.token_states import Haystack
from training.projection.token_weights import piece_counts, pieces, token_weights
from training.projection.validation import recalls

DIM = 8


def unit(rows: Matrix) -> Matrix:
    scaled: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return scaled


def haystack(seed: int = 3, turns: int = 30) -> Haystack:
    """Return a conversation of two tokens per turn, with a question for each turn made of the turn's own tokens."""
    passages = unit(np.random.default_rng(seed).normal(size=(2 * turns, DIM)).astype(np.float32) + np.float32(0.5))
    begins, sessions = np.arange(0, 2 * turns, 2), np.arange(turns) // 10
    weights = np.full(2 * turns, 0.5, np.float32)
    target, means = np.eye(turns, dtype=np.float32), np.zeros((2, DIM), np.float32)
    return Haystack("made", passages, begins, passages, begins, weights, target, sessions, means)


def conversation(**said: object) -> dict[str, object]:
    first = [{"speaker": "Ana", "dia_id": "D1:1", "text": "Our dog"} | said, {"speaker": "Bo"} | _turn("D1:2", "Hi")]
    talk = {"speaker_a": "Ana", "session_1": first, "session_10": [{"speaker": "Ana"} | _turn("D10:1", "Later")]}
    talk |= {"session_2": [{"speaker": "Bo"} | _turn("D2:1", "Then")]}
    asked = [{"question": "What did Ana say of the dog?", "evidence": ["D1:1", "D2:1"], "category": 1}]
    return {"sample_id": "conv-made", "conversation": talk, "qa": [*asked, {"question": "?", "evidence": []}]}


def _turn(place: str, text: str) -> dict[str, str]:
    return {"dia_id": place, "text": text}


def test_conversation_is_read_by_session_with_captions_without_names(tmp_path: Path) -> None:
    (tmp_path / "conv-made.json").write_text(json.dumps(conversation(blip_caption="a photo of a dog")))
    [read] = read_conversations(tmp_path)
    assert read.turns == ("Our dog [image: a photo of a dog]", "Hi", "Then", "Later")
    assert read.sessions == (1, 1, 2, 10)
    assert [(asked.text, asked.evidence) for asked in read.questions] == [("What did say of the dog?", (0, 2))]


def test_components_are_whitened() -> None:
    some = haystack(turns=400)
    mapped = some.passages @ principal_components([some], DIM)
    squares = mapped.T @ mapped
    assert squares / squares[0, 0] == pytest.approx(np.eye(DIM), abs=0.01)


def test_sign_of_a_component_does_not_depend_on_the_library() -> None:
    made = principal_components([haystack(), haystack(seed=4)], DIM)
    assert (made.max(axis=0) == np.abs(made).max(axis=0)).all()


def test_projection_file_round_trip(tmp_path: Path) -> None:
    some, path = haystack(), tmp_path / "made.bin"
    both = principal_components([some], 4)
    path.write_bytes(serialise_arrays("linear", {"passage": both}))
    read = TokenProjection.of(read_learned(path))
    assert read.name.startswith("linear-4-")
    assert read.of_passage(some.passages) == pytest.approx(unit(some.passages @ both), abs=0.001)
    assert read.of_query(some.passages) == pytest.approx(read.of_passage(some.passages))


def test_rare_words_weigh_most_and_stop_words_little() -> None:
    spans = np.array([[0, 3], [4, 7], [8, 13], [13, 14]], np.int32)
    counts = piece_counts([["dog", "the"]] * 9 + [["zebra"]])
    weights = token_weights("the dog zebra?", spans, counts, 10)
    assert pieces("the dog zebra?", spans) == ["the", "dog", "zebra", "?"]
    assert weights.sum() == pytest.approx(1)
    assert weights[2] == weights.max()
    assert weights[3] < weights[0] < weights[2]


def test_recall_is_1_for_questions_equal_to_their_turn() -> None:
    same = np.eye(DIM, dtype=np.float32)
    assert recalls(haystack(), TokenProjection("same", same, same))[:, :2] == pytest.approx(1)


def test_recall_is_small_for_unrelated_projections() -> None:
    maps = [np.eye(DIM, dtype=np.float32)[:, order] for order in ([0, 1, 2, 3], [4, 5, 6, 7])]
    assert recalls(haystack(turns=200), TokenProjection("odd", maps[0], maps[1]))[:, 0].mean() < 0.3


def test_only_neighbours_of_the_same_session_count() -> None:
    """The question needs two tokens; turns alternate between them; only the last two turns share a session."""
    turns = np.arange(12)
    tokens = np.eye(2, dtype=np.float32)
    target = np.zeros((1, 12), np.float32)
    target[0, 10:] = 0.5
    sessions = np.minimum(turns, 10)
    weights = np.full(2, 0.5, np.float32)
    some = Haystack(
        "near", tokens[turns % 2], turns, tokens, np.array([0]), weights, target, sessions, np.zeros((2, 2), np.float32)
    )
    assert recalls(some, TokenProjection("same", tokens, tokens))[0].tolist() == [0, 0, 1, 1]


def test_only_a_long_common_mean_is_learned(tmp_path: Path) -> None:
    narrow, path = replace(haystack(), means=np.full((2, DIM), 0.3, np.float32)), tmp_path / "narrow.bin"
    path.write_bytes(
        serialise_arrays("linear", {"passage": principal_components([narrow], 4), **common_means([narrow])})
    )
    assert PooledCentre.of(read_learned(path).arrays).passage == pytest.approx(narrow.means[0])
    assert common_means([replace(narrow, means=narrow.means / np.float32(3))]) == {}
