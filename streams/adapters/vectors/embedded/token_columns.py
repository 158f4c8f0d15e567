"""Token vectors of many texts in one matrix, by number of the text, and MaxSim over some of them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from streams.adapters.vectors.embedded.packed_rows import PackedTokens
from streams.adapters.vectors.embedded.row_table import INITIAL_ROWS, with_capacity
from streams.adapters.vectors.embedded.scoring import QuestionSteps, RowNumbers, ScoreArray
from streams.adapters.vectors.embedded.token_products import ShiftedTokens, shift, unshift

SCORING_BATCH_SIZE = 1024
"""Texts whose tokens are gathered at a time, where those between them are dead or not asked for: some 3 MB."""


class TokenColumns:
    """Token vectors of all texts, also of dead ones."""

    def __init__(self, token_dim: int) -> None:
        self._ends = np.zeros(INITIAL_ROWS + 1, np.int64)
        """Text i has the tokens from `_ends[i]` to `_ends[i + 1]`."""
        self._tokens: ShiftedTokens = np.zeros((INITIAL_ROWS, token_dim), np.uint8)

    @property
    def nbytes(self) -> int:
        """The bytes of the matrix, with what is reserved."""
        return self._tokens.nbytes

    def put(self, first: int, counts: NDArray[np.int64], tokens: Sequence[PackedTokens]) -> None:
        """Write the texts from this one on, which follow the last one: so many tokens of each, one after the other."""
        ends = self._ends[first] + np.cumsum(counts, dtype=np.int64)
        self._ends = with_capacity(self._ends, first + len(counts) + 1)
        self._tokens = with_capacity(self._tokens, int(ends[-1]))
        self._tokens[self._ends[first] : ends[-1]] = shift(np.concatenate(tokens))
        self._ends[first + 1 : first + len(counts) + 1] = ends

    def counts(self, texts: RowNumbers) -> NDArray[np.int64]:
        """Count the token vectors of each of these texts."""
        counts: NDArray[np.int64] = self._ends[texts + 1] - self._ends[texts]
        return counts

    def of(self, first: int, last: int) -> PackedTokens:
        """Return the token vectors of the texts from `first` to before `last`."""
        return unshift(self._tokens[self._ends[first] : self._ends[last]])

    def maxsim(self, texts: RowNumbers, steps: QuestionSteps) -> ScoreArray:
        """Return the scores of these texts, each of which has token vectors."""
        starts = range(0, len(texts), SCORING_BATCH_SIZE)
        parts = [self._scores(texts[start : start + SCORING_BATCH_SIZE], steps) for start in starts]
        return np.concatenate([*parts, np.zeros(0)])

    def _scores(self, texts: RowNumbers, steps: QuestionSteps) -> ScoreArray:
        firsts, counts = self._ends[texts], self.counts(texts)
        starts = np.cumsum(counts) - counts
        if texts[-1] - texts[0] == len(texts) - 1:
            tokens = self._tokens[firsts[0] : firsts[0] + counts.sum()]
        else:
            # `take` copies tokens in half of the time of an index.
            tokens = self._tokens.take(np.repeat(firsts - starts, counts) + np.arange(counts.sum()), axis=0)
        return steps.maxsim(tokens, starts)
