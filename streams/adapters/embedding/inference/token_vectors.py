"""From the token states of a text to the vectors of late interaction.

Enters: the token states of one text, and their spans. Leaves: projected rows; of a passage those of content words,
quantised; of a query all, with their spans. Guaranteed: pure; at most the first
`MAX_TOKEN_ROWS` rows; the pieces of a word are kept or dropped together.
"""

import re

import numpy as np
from numpy.typing import NDArray

from agents.rules.text.languages import stop_words_of
from agents.rules.text.tokenizer import fold
from schemas.vectors import Matrix, Spans
from streams.adapters.embedding.inference.learned_arrays import LearnedArrays
from streams.adapters.embedding.inference.token_grid import dequantise_tokens, quantise_tokens
from streams.adapters.embedding.inference.token_projection import TokenProjection

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
        """Return the rows of the text's content words, shape (at most `MAX_TOKEN_ROWS`, `dim`)."""
        content = states[content_token_mask(text, spans)][:MAX_TOKEN_ROWS]
        return dequantise_tokens(quantise_tokens(self._projection.of_passage(content)))

    def of_query(self, spans: Spans, states: Matrix) -> tuple[Matrix, Spans]:
        """Return a row for each token, shape (at most `MAX_TOKEN_ROWS`, `dim`), and its span."""
        return self._projection.of_query(states[:MAX_TOKEN_ROWS]), spans[:MAX_TOKEN_ROWS]


def content_token_mask(text: str, spans: Spans) -> NDArray[np.bool_]:
    """Mark each span that touches a word other than a stop word of the text's language; all, if none does.

    So a text of stop words and punctuation alone keeps all its tokens.
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
