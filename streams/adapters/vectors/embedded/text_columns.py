"""The texts of many memories in columns, by row of a `RowTable`, and their scores.

A text is a passage of a memory that is cut, or the whole of one that is not. Guaranteed: a text's score depends on its
own vectors and the question alone, to the last digit.
"""

from collections.abc import Sequence
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from agents.ports.indexes import PASSAGES_READ
from schemas.models.vectors import PassageVectors, ScoredPassages, Vector
from schemas.state.modes import Fingerprint
from streams.adapters.vectors.embedded.maxsim import (
    Mask,
    QuestionSteps,
    RowNumbers,
    ScoreArray,
    ShiftedTokens,
    shift,
    unshift,
)
from streams.adapters.vectors.embedded.packed_vectors import PackedTokens, precise_unit_vector

INITIAL_ROWS = 4
"""The capacity before it grows. Many users have few memories: with one, 64 rows take 108 KB, 4 take 8."""

MAX_ROWS_DOUBLED = 4096
"""A larger capacity grows by an eighth."""

_Number = TypeVar("_Number", bound=np.generic)

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


class TextQuestion(NamedTuple):
    """A question to texts.

    With `steps` by MaxSim, of a cut memory over the passages nearest to `vector` if that is given; without `steps` by
    the cosine of passages with `vector`.
    """

    steps: QuestionSteps | None = None
    vector: Vector | None = None


class TextScores(NamedTuple):
    """Scores of memories by their best text; `rows` are their numbers in some list, as are those of `passages`."""

    rows: RowNumbers
    scores: ScoreArray
    passages: ScoredPassages | None = None

    def at(self, numbers: RowNumbers) -> Self:
        """Return the same scores by the numbers that the memories have in another list."""
        passages = self.passages
        if passages is not None:
            passages = ScoredPassages(numbers[passages.rows], passages.parts, passages.scores)
        return type(self)(numbers[self.rows], self.scores, passages)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the scores of several lists of memories, none of which is in two."""
        passages = [part.passages for part in parts if part.passages is not None]
        joined = None
        if passages:
            joined = ScoredPassages(
                rows=np.concatenate([part.rows for part in passages]),
                parts=np.concatenate([part.parts for part in passages]),
                scores=np.concatenate([part.scores for part in passages]),
            )
        rows = np.concatenate([np.zeros(0, np.int64), *(part.rows for part in parts)])
        return cls(rows, np.concatenate([np.zeros(0), *(part.scores for part in parts)]), joined)


class TextColumns:
    """Token vectors of all texts and pooled vectors of all passages, also of dead rows."""

    def __init__(self, fingerprint: Fingerprint) -> None:
        self._tokens = TokenColumns(fingerprint.token_dim)
        self._pooled = np.zeros((INITIAL_ROWS if fingerprint.passages else 0, fingerprint.dim), np.float32)
        self._text_ends = np.zeros(INITIAL_ROWS + 1, np.int64)
        """Row i has the texts from `_text_ends[i]` to `_text_ends[i + 1]`."""
        self._passage_ends = np.zeros(INITIAL_ROWS + 1, np.int64)
        """And the passages between these; none if it is not cut."""
        self._has_passages = False
        self._latest: tuple[Vector, RowNumbers, Vector] | None = None
        """The query of the latest products, their passages, and the products: a question asks for them twice."""

    @property
    def nbytes(self) -> int:
        """The bytes of the matrices, with what is reserved."""
        return self._tokens.nbytes + self._pooled.nbytes

    def put(self, new: slice, tokens: Sequence[PackedTokens], passages: Sequence[PassageVectors | None]) -> None:
        """Write the rows that follow the last one."""
        counts = [
            [len(own)] if cut is None else cut.token_counts.tolist() for own, cut in zip(tokens, passages, strict=True)
        ]
        self._text_ends = with_capacity(self._text_ends, new.stop + 1)
        self._passage_ends = with_capacity(self._passage_ends, new.stop + 1)
        rows = slice(new.start + 1, new.stop + 1)
        first = int(self._text_ends[new.start])
        self._text_ends[rows] = first + np.cumsum([len(own) for own in counts])
        self._tokens.put(first, np.concatenate(counts), tokens)
        first = int(self._passage_ends[new.start])
        self._passage_ends[rows] = first + np.cumsum([0 if cut is None else len(cut) for cut in passages])
        if cut_ones := [cut.pooled for cut in passages if cut is not None]:
            self._pooled = with_capacity(self._pooled, int(self._passage_ends[new.stop]))
            self._pooled[first : self._passage_ends[new.stop]] = np.concatenate(cut_ones)
            self._has_passages = True
        self._latest = None

    def of(self, row: int) -> tuple[PackedTokens, PassageVectors | None]:
        first, last = self._text_ends[row : row + 2].tolist()
        tokens = self._tokens.of(first, last)
        start, end = self._passage_ends[row : row + 2].tolist()
        if start == end:
            return tokens, None
        return tokens, PassageVectors(self._pooled[start:end].copy(), self._tokens.counts(np.arange(first, last)))

    def scores(self, rows: RowNumbers, question: TextQuestion) -> TextScores:
        """Score the rows that have the vectors the question needs; the result's rows are indexes into `rows`."""
        if question.steps is None:
            assert question.vector is not None
            places, parts, passages = _spread(self._passage_ends, rows)
            cosines = np.clip(self._products(passages, question.vector), -1.0, 1.0).astype(np.float64)
            return _by_best(places, parts, cosines, np.ones(len(places), np.bool_))
        if not self._has_passages:
            # Texts are rows.
            places = np.flatnonzero(self._tokens.counts(rows))
            return TextScores(places, self._tokens.maxsim(rows[places], question.steps))
        firsts = self._text_ends[rows]
        if question.vector is None:
            places, parts, texts = _spread(self._text_ends, rows)
            has_tokens = self._tokens.counts(texts) > 0
            places, parts = places[has_tokens], parts[has_tokens]
        else:
            places, parts = np.nonzero(self._nearest(rows, firsts, question.vector))
        is_cut = (self._passage_ends[rows + 1] > self._passage_ends[rows])[places]
        return _by_best(places, parts, self._tokens.maxsim(firsts[places] + parts, question.steps), is_cut)

    def _nearest(self, rows: RowNumbers, firsts: RowNumbers, query: Vector) -> Mask:
        """Return which texts are read, shape (rows, texts): of each row those with tokens that are nearest to a query.

        `firsts` are the numbers of the rows' first texts.
        """
        places, parts, passages = _spread(self._passage_ends, rows)
        cosines = np.full((len(rows), int(parts.max(initial=0)) + 1), -np.inf, np.float32)
        cosines[:, 0] = 0.0  # The one text of a row that is not cut.
        has_tokens = self._tokens.counts(firsts[places] + parts) > 0
        cosines[places, parts] = np.where(has_tokens, self._products(passages, query), -np.inf)
        cosines[self._tokens.counts(firsts) == 0, 0] = -np.inf
        near, each = np.zeros(cosines.shape, np.bool_), np.arange(len(rows))
        # Three times the greatest, the first of equal ones: a sort of all takes three times as long.
        for _ in range(PASSAGES_READ):
            best = cosines.argmax(axis=1)
            near[each, best] |= cosines[each, best] > -np.inf
            cosines[each, best] = -np.inf
        return near

    def _products(self, passages: RowNumbers, query: Vector) -> Vector:
        """Return the products of these passages, in ascending order, with a query of length 1."""
        if not len(passages):
            return np.zeros(0, np.float32)
        if self._latest is not None and self._latest[0] is query and np.array_equal(self._latest[1], passages):
            return self._latest[2]
        is_run = passages[-1] - passages[0] == len(passages) - 1
        pooled = self._pooled[passages[0] : passages[-1] + 1] if is_run else self._pooled.take(passages, axis=0)
        # Not a matrix product: see `BoundaryVectors.nearest`.
        products: Vector = np.einsum("ij,j->i", pooled, precise_unit_vector(query))
        self._latest = query, passages, products
        return products


def _spread(ends: RowNumbers, rows: RowNumbers) -> tuple[RowNumbers, RowNumbers, RowNumbers]:
    """Return for each item of the rows the place of its row, its number in it, and its own number among all."""
    firsts = ends[rows]
    counts = ends[rows + 1] - firsts
    places = np.repeat(np.arange(len(rows)), counts)
    parts = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
    return places, parts, firsts[places] + parts


def _by_best(places: RowNumbers, parts: RowNumbers, scores: ScoreArray, is_cut: Mask) -> TextScores:
    """Return the best score of each place, in whose order the texts are, with the scores of all passages."""
    if not len(places):
        return TextScores(places, scores)
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    passages = ScoredPassages(places[is_cut], parts[is_cut], scores[is_cut]) if is_cut.any() else None
    return TextScores(places[starts], np.maximum.reduceat(scores, starts), passages)


def with_capacity(column: NDArray[_Number], rows: int) -> NDArray[_Number]:
    """Return the column, or a copy with at least this many rows; new rows take no memory until written."""
    if rows <= len(column):
        return column
    larger = len(column) + max(len(column) // 8, min(len(column), MAX_ROWS_DOUBLED))
    longer = np.zeros((max(rows, larger), *column.shape[1:]), column.dtype)
    longer[: len(column)] = column
    return longer
