"""Which token vectors are kept of a text, and what becomes of them."""

import re

import numpy as np
import pytest

from schemas.vectors import Matrix, Spans
from streams.adapters.embedding.inference.content_tokens import telling_tokens
from streams.adapters.embedding.inference.token_grid import STEPS, from_grid, to_grid
from streams.adapters.embedding.inference.token_projection import TokenProjection
from streams.adapters.embedding.inference.token_vectors import MOST_TOKENS, TokenVectors

PIECE = re.compile(r"\w{1,4}|[^\w\s]")
"""Tokens of at most four letters: longer words are several."""


def pieces(text: str) -> Spans:
    """Where the tokens of a text stand."""
    return np.array([match.span() for match in PIECE.finditer(text)], np.int32).reshape(-1, 2)


def kept(text: str) -> list[str]:
    spans = pieces(text)
    return [text[start:end] for start, end in spans[telling_tokens(text, spans)]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The house is red.", "hous e red"),
        ("We don't deploy (yet)!", "depl oy"),
        ("We don\u2019t deploy", "depl oy"),
        ("Ana's harbour", "Ana ' s harb our"),
        ("Wir haben das Haus nicht gekauft.", "Haus geka uft"),
        ("No hemos comprado la casa", "comp rado casa"),
        ("Nous n'avons pas la maison", "n ' avon s mais on"),
        ("Price: 12,50 \u20ac", "Pric e 12 50"),
        ("\u6771\u4eac\u306f\u65e5\u672c\u306e\u9996\u90fd", "\u6771\u4eac\u306f\u65e5 \u672c\u306e\u9996\u90fd"),
        ("cake \U0001f389", "cake"),
    ],
)
def test_tokens_of_stop_words_and_punctuation_are_left_out_and_words_stay_whole(text: str, expected: str) -> None:
    assert kept(text) == expected.split()


@pytest.mark.parametrize("text", ["Is it? It is!", "?!", "\U0001f389", "don't"])
def test_a_text_in_which_no_word_tells_anything_keeps_all_its_tokens(text: str) -> None:
    assert telling_tokens(text, pieces(text)).all()
    assert len(kept(text)) == len(pieces(text))


def test_a_token_that_begins_before_its_word_belongs_to_it() -> None:
    text = "the red house"
    spans = np.array([[0, 3], [3, 7], [7, 13]], np.int32)
    assert list(telling_tokens(text, spans)) == [False, True, True]


def test_no_text_has_no_tokens() -> None:
    assert telling_tokens("", pieces("")).shape == (0,)


def drawn(rows: int, columns: int) -> Matrix:
    numbers = np.random.default_rng(1).standard_normal((rows, columns)).astype(np.float32)
    unit: Matrix = numbers / np.linalg.norm(numbers, axis=1, keepdims=True)
    return unit


def test_rows_on_the_grid_stay_where_they_are_and_others_move_by_half_a_step_at_most() -> None:
    rows = drawn(200, 128)
    moved = from_grid(to_grid(rows))
    assert np.abs(moved - rows).max() <= 0.5 / STEPS
    assert np.array_equal(from_grid(to_grid(moved)), moved)
    assert np.array_equal(moved.astype(np.float16).astype(np.float32), moved)


def test_products_of_rows_on_the_grid_are_those_of_the_rows_to_the_second_digit() -> None:
    rows, question = drawn(200, 128), drawn(100, 128)[50:]
    assert np.abs(question @ from_grid(to_grid(rows)).T - question @ rows.T).max() < 0.01


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_the_ends_are_cut_not_wrapped(value: float) -> None:
    assert from_grid(to_grid(np.full((1, 1), value, np.float32))) == pytest.approx(value, abs=1 / STEPS)


def test_of_a_long_text_the_first_tokens_are_kept_and_of_a_passage_the_first_telling_ones() -> None:
    vectors = TokenVectors(TokenProjection.plain(16))
    text = "the red " * 300
    spans = np.array([match.span() for match in re.finditer(r"\w+", text)], np.int32)
    states = drawn(600, 16)
    passage = vectors.of_passage(text, spans, states)
    tokens, places = vectors.of_question(spans, states)
    assert np.allclose(passage, states[1::2][:MOST_TOKENS], atol=0.5 / STEPS + 1e-6)
    assert np.allclose(tokens, states[:MOST_TOKENS], atol=1e-6)
    assert np.array_equal(places, spans[:MOST_TOKENS])
