"""Token vectors of many memories in one matrix, by row of a `RowTable`, and MaxSim over some of them."""

from collections.abc import Sequence

import numpy as np

from streams.adapters.vectors.embedded.packed_rows import PackedTokens
from streams.adapters.vectors.embedded.row_table import INITIAL_ROWS, with_capacity
from streams.adapters.vectors.embedded.scoring import Mask, QuestionSteps, RowNumbers, ScoreArray
from streams.adapters.vectors.embedded.token_products import ShiftedTokens, shift, unshift

SCORING_BATCH_SIZE = 1024
"""Memories whose tokens are gathered at a time, where rows between them are dead or not asked for: some 3 MB."""


class TokenColumns:
    """Token vectors of all rows, also of dead ones."""

    def __init__(self, token_dim: int) -> None:
        self._ends = np.zeros(INITIAL_ROWS + 1, np.int64)
        """Row i has the tokens from `_ends[i]` to `_ends[i + 1]`."""
        self._tokens: ShiftedTokens = np.zeros((INITIAL_ROWS, token_dim), np.uint8)

    @property
    def nbytes(self) -> int:
        """The bytes of the matrix, with what is reserved."""
        return self._tokens.nbytes

    def put(self, new: slice, tokens: Sequence[PackedTokens]) -> None:
        """Write the rows that follow the last one."""
        ends = self._ends[new.start] + np.cumsum([len(one) for one in tokens], dtype=np.int64)
        self._ends = with_capacity(self._ends, new.stop + 1)
        self._tokens = with_capacity(self._tokens, int(ends[-1]))
        self._tokens[self._ends[new.start] : ends[-1]] = shift(np.concatenate(tokens))
        self._ends[new.start + 1 : new.stop + 1] = ends

    def has_tokens(self, rows: RowNumbers) -> Mask:
        """Return which of these rows have token vectors."""
        mask: Mask = self._ends[rows + 1] > self._ends[rows]
        return mask

    def of(self, row: int) -> PackedTokens:
        """Return the token vectors of a row."""
        return unshift(self._tokens[self._ends[row] : self._ends[row + 1]])

    def maxsim(self, rows: RowNumbers, steps: QuestionSteps) -> ScoreArray:
        """Return the scores of these rows, each of which has token vectors."""
        starts = range(0, len(rows), SCORING_BATCH_SIZE)
        parts = [self._scores(rows[start : start + SCORING_BATCH_SIZE], steps) for start in starts]
        return np.concatenate([*parts, np.zeros(0)])

    def _scores(self, rows: RowNumbers, steps: QuestionSteps) -> ScoreArray:
        firsts = self._ends[rows]
        counts = self._ends[rows + 1] - firsts
        starts = np.cumsum(counts) - counts
        if rows[-1] - rows[0] == len(rows) - 1:
            tokens = self._tokens[firsts[0] : firsts[0] + counts.sum()]
        else:
            # `take` copies rows in half of the time of an index.
            tokens = self._tokens.take(np.repeat(firsts - starts, counts) + np.arange(counts.sum()), axis=0)
        return steps.maxsim(tokens, starts)
