"""From the states of a text's tokens to the vectors that late interaction compares.

Enters: the states of one text, and where its tokens stand. Leaves: projected rows: of a passage those of its telling
words, on the grid; of a question all, with their places. Guaranteed: no more than `MAX_TOKEN_ROWS` rows, the first ones.
"""

from schemas.vectors import Matrix, Spans
from streams.adapters.embedding.inference.content_tokens import content_token_mask
from streams.adapters.embedding.inference.learned_arrays import LearnedArrays
from streams.adapters.embedding.inference.token_grid import dequantise_tokens, quantise_tokens
from streams.adapters.embedding.inference.token_projection import TokenProjection

MAX_TOKEN_ROWS = 256
"""Rows of one text: as many as MiniLM reads tokens. Other models read thousands; 256 rows of a passage take 32 KB."""


class TokenVectors:
    """What is kept of token states, by one projection. Any thread may use it."""

    def __init__(self, projection: TokenProjection) -> None:
        self.name = projection.name
        self.dim = projection.dim
        self._projection = projection

    @classmethod
    def of(cls, learned: LearnedArrays | None, dim: int) -> "TokenVectors":
        """By the projection that was learned for a model, or the plain one of its dimension."""
        return cls(TokenProjection.plain(dim) if learned is None else TokenProjection.of(learned))

    def of_passage(self, text: str, spans: Spans, states: Matrix) -> Matrix:
        """Rows of the text's telling words, shape (at most `MAX_TOKEN_ROWS`, `dim`)."""
        kept = states[content_token_mask(text, spans)][:MAX_TOKEN_ROWS]
        return dequantise_tokens(quantise_tokens(self._projection.of_passage(kept)))

    def of_question(self, spans: Spans, states: Matrix) -> tuple[Matrix, Spans]:
        """A row for each token, shape (at most `MAX_TOKEN_ROWS`, `dim`), and its place."""
        return self._projection.of_question(states[:MAX_TOKEN_ROWS]), spans[:MAX_TOKEN_ROWS]
