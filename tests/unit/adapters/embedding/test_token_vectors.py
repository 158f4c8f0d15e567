"""Token vectors: selection of content words, quantisation and limits."""

import re

import numpy as np
import pytest

from schemas.models.vectors import Matrix, Spans
from streams.adapters.embedding.inference.token_vectors import (
    MAX_TOKEN_ROWS,
    QUANTISATION_STEPS,
    TokenProjection,
    TokenVectors,
    content_token_mask,
    dequantise_tokens,
    quantise_tokens,
)

PIECE = re.compile(r"\w{1,4}|[^\w\s]")
"""Tokens of at most four letters: longer words have several."""


def pieces(text: str) -> Spans:
    return np.array([match.span() for match in PIECE.finditer(text)], np.int32).reshape(-1, 2)


def kept(text: str) -> list[str]:
    spans = pieces(text)
    return [text[start:end] for start, end in spans[content_token_mask(text, spans)]]


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
def test_stop_words_and_punctuation_are_dropped_whole(text: str, expected: str) -> None:
    assert kept(text) == expected.split()


@pytest.mark.parametrize("text", ["Is it? It is!", "?!", "\U0001f389", "don't"])
def test_text_of_stop_words_keeps_all_tokens(text: str) -> None:
    assert content_token_mask(text, pieces(text)).all()
    assert len(kept(text)) == len(pieces(text))


def test_a_token_that_begins_before_its_word_belongs_to_it() -> None:
    text = "the red house"
    spans = np.array([[0, 3], [3, 7], [7, 13]], np.int32)
    assert list(content_token_mask(text, spans)) == [False, True, True]


def test_empty_text_has_no_tokens() -> None:
    assert content_token_mask("", pieces("")).shape == (0,)


def drawn(rows: int, columns: int) -> Matrix:
    numbers = np.random.default_rng(1).standard_normal((rows, columns)).astype(np.float32)
    unit: Matrix = numbers / np.linalg.norm(numbers, axis=1, keepdims=True)
    return unit


def test_quantisation_moves_rows_by_half_a_step_at_most() -> None:
    rows = drawn(200, 128)
    moved = dequantise_tokens(quantise_tokens(rows))
    assert np.abs(moved - rows).max() <= 0.5 / QUANTISATION_STEPS
    assert np.array_equal(dequantise_tokens(quantise_tokens(moved)), moved)
    assert np.array_equal(moved.astype(np.float16).astype(np.float32), moved)


def test_quantised_dot_products_are_within_a_hundredth() -> None:
    rows, question = drawn(200, 128), drawn(100, 128)[50:]
    assert np.abs(question @ dequantise_tokens(quantise_tokens(rows)).T - question @ rows.T).max() < 0.01


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_quantisation_clips_and_does_not_wrap(value: float) -> None:
    assert dequantise_tokens(quantise_tokens(np.full((1, 1), value, np.float32))) == pytest.approx(
        value, abs=1 / QUANTISATION_STEPS
    )


def test_long_text_keeps_its_first_token_rows() -> None:
    vectors = TokenVectors(TokenProjection.plain(16))
    text = "the red " * 300
    spans = np.array([match.span() for match in re.finditer(r"\w+", text)], np.int32)
    states = drawn(600, 16)
    passage = vectors.of_passage(text, spans, states)
    tokens, places = vectors.of_query(spans, states)
    assert np.allclose(passage, states[1::2][:MAX_TOKEN_ROWS], atol=0.5 / QUANTISATION_STEPS + 1e-6)
    assert np.allclose(tokens, states[:MAX_TOKEN_ROWS], atol=1e-6)
    assert np.array_equal(places, spans[:MAX_TOKEN_ROWS])
