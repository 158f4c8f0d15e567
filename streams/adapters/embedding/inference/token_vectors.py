"""Token states of a text to the vectors of late interaction, at most `MAX_TOKEN_ROWS`, and their quantisation.

Leaves: projected rows; of a passage those of content words, quantised to 8-bit integers; of a query all, with their
spans. The pieces of a word are kept or dropped together. Quantising the rows of integers gives the same integers.
"""

import hashlib
import re
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from agents.rules.text.languages import stop_words_of
from agents.rules.text.tokenizer import fold
from schemas.models.vectors import Matrix, Spans
from streams.adapters.embedding.inference.local_model import LEARNED_MAGIC, LearnedArrays

QuantisedTokens = NDArray[np.int8]
"""Shape (tokens, dim)."""

QUANTISATION_STEPS = 128
"""Steps from 0 to 1. A power of two: 16-bit floats hold every step exactly as well. With 128 dimensions, rounding moves
a dot product of two unit vectors by 0.002 on average."""


def quantise_tokens(tokens: Matrix) -> QuantisedTokens:
    """Round to the nearest steps; clip 1 itself to 127, which a unit row of several dimensions hardly reaches."""
    grid: QuantisedTokens = np.clip(
        np.rint(tokens * np.float32(QUANTISATION_STEPS)), 1 - QUANTISATION_STEPS, QUANTISATION_STEPS - 1
    ).astype(np.int8)
    return grid


def dequantise_tokens(grid: QuantisedTokens) -> Matrix:
    """Return the rows that the integers encode."""
    return grid.astype(np.float32) * np.float32(1 / QUANTISATION_STEPS)


PLAIN_DIM = 128
"""Maximum dimensions of `plain`: a turn of 15 tokens takes 2 KB, and similarities change little."""

MIN_NORM = 1e-12


class TokenProjection:
    """One map for passages and one for queries. Thread-safe."""

    def __init__(self, name: str, passage: Matrix, query: Matrix) -> None:
        """Take two maps of shape (states' dim, dim). Raises ValueError if their shapes differ."""
        if passage.ndim != 2 or passage.shape != query.shape:
            raise ValueError(f"the maps' shapes {passage.shape} and {query.shape} are not those of a projection")
        self.name = name
        self.dim: int = passage.shape[1]
        self._passage = passage
        self._query = query

    @classmethod
    def of(cls, learned: LearnedArrays) -> Self:
        """Return the projection of a learned file. Raises ValueError for one without a map of passages."""
        if "passage" not in learned.arrays:
            raise ValueError(f"the learned file {learned.digest} has no map of passages")
        passage = learned.arrays["passage"]
        name = f"{learned.kind}-{passage.shape[1]}-{learned.digest}"
        return cls(name, passage, learned.arrays.get("question", passage))

    @classmethod
    def plain(cls, dim: int) -> Self:
        """Return the map without a learned one: the identity, or a map to `PLAIN_DIM` dimensions."""
        if dim <= PLAIN_DIM:
            identity = np.eye(dim, dtype=np.float32)
            return cls(f"identity-{dim}", identity, identity)
        cosines = _signed_cosines(dim)
        return cls(f"cosines-{PLAIN_DIM}", cosines, cosines)

    def of_passage(self, states: Matrix) -> Matrix:
        """Project token states of a passage, shape (tokens, states' dim), to rows of shape (tokens, `dim`)."""
        return _unit_rows(states @ self._passage)

    def of_query(self, states: Matrix) -> Matrix:
        """Project token states of a query to rows to compare with those of passages."""
        return _unit_rows(states @ self._query)


def _signed_cosines(dim: int) -> Matrix:
    """Return orthonormal columns, shape (dim, `PLAIN_DIM`): cosine waves over the dimensions, signs from a hash.

    The subsampled randomised cosine transform (Ailon and Chazelle 2009, there with Hadamard's matrix) preserves inner
    products on average, whatever the model's dimensions mean. The signs do not depend on a library's random numbers.
    """
    sign_bits = np.frombuffer(hashlib.shake_256(LEARNED_MAGIC).digest(dim), np.uint8) & 1
    waves = np.linspace(1, dim - 1, PLAIN_DIM).astype(int)
    cosines = np.cos(np.pi * np.outer(np.arange(dim) + 0.5, waves) / dim) * np.sqrt(2 / dim)
    signed: Matrix = (cosines * np.where(sign_bits, 1.0, -1.0)[:, np.newaxis]).astype(np.float32)
    return signed


def _unit_rows(rows: Matrix) -> Matrix:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    units: Matrix = rows / np.maximum(lengths, np.float32(MIN_NORM))[:, np.newaxis]
    return units


MAX_TOKEN_ROWS = 256
"""Rows of one text: MiniLM's token limit. Other models read thousands; 256 rows of a passage take 32 KB."""

WORD_PATTERN = re.compile(r"\w+(?:['\u2019]\w+)*")
"""A run of letters and digits, with the apostrophes inside it: `don't` is one stop word, not three tokens."""


class TokenVectors:
    """Makes token vectors by one projection. Thread-safe."""

    def __init__(self, projection: TokenProjection) -> None:
        self.name = projection.name
        self.dim = projection.dim
        self._projection = projection

    @classmethod
    def of(cls, learned: LearnedArrays | None, dim: int) -> "TokenVectors":
        """Use the projection that was learned for a model, or the plain one of its dimension."""
        return cls(TokenProjection.plain(dim) if learned is None else TokenProjection.of(learned))

    def of_passage(self, text: str, spans: Spans, states: Matrix) -> Matrix:
        [rows] = self.of_passages([(text, spans, states)])
        return rows

    def of_passages(self, texts: Sequence[tuple[str, Spans, Matrix]]) -> list[Matrix]:
        """Return the rows of the content words of each text, shape (at most `MAX_TOKEN_ROWS`, `dim`).

        A text comes with its tokens' spans and states.
        """
        masks = [content_token_mask(text, spans) for text, spans, _ in texts]
        content = [states[mask][:MAX_TOKEN_ROWS] for (_, _, states), mask in zip(texts, masks, strict=True)]
        projected = [self._projection.of_passage(states) for states in content]
        return [dequantise_tokens(quantise_tokens(rows)) for rows in projected]

    def of_query(self, spans: Spans, states: Matrix) -> tuple[Matrix, Spans]:
        """Return a row for each token, shape (at most `MAX_TOKEN_ROWS`, `dim`), and its span."""
        return self._projection.of_query(states[:MAX_TOKEN_ROWS]), spans[:MAX_TOKEN_ROWS]


def content_token_mask(text: str, spans: Spans) -> NDArray[np.bool_]:
    """Mark each span that touches a word other than a stop word of the text's language; all, if there is no such span.

    So a text of only stop words and punctuation keeps all its tokens.
    """
    words = [(match.start(), match.end(), fold(match.group())) for match in WORD_PATTERN.finditer(text)]
    stops = stop_words_of([word for _, _, word in words])
    content = np.zeros(len(text) + 1, np.int32)
    for start, end, word in words:
        if word not in stops:
            content[start + 1 : end + 1] = 1
    words_before = content.cumsum()
    is_content: NDArray[np.bool_] = words_before[spans[:, 1]] > words_before[spans[:, 0]]
    return is_content if is_content.any() else np.ones(len(spans), np.bool_)
