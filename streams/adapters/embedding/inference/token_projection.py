"""The linear map that makes a model's token states short enough to be kept, and comparable by a dot product.

Enters: token states as the model gives them, shape (tokens, states' dim), of any length but finite. Leaves: one row of
length 1 for each state, shape (tokens, `dim`), on the question's or on the passage's side; the dot product of a row of
one side with a row of the other says how alike the tokens are, in -1..1. Guaranteed: pure, the same rows for the same
states whatever stands beside them (to the last digits of the arithmetic), no row for no states.

A learned projection is a file that `streams.adapters.embedding.inference.learned_arrays` reads: `passage`, and `question` where
the sides differ, each of shape (states' dim, `dim`). `name` ends with a hash of the file, so that another file is
another space. `plain` is for models that nothing was learned for.
"""

import hashlib
from typing import Self

import numpy as np

from schemas.vectors import Matrix
from streams.adapters.embedding.inference.learned_arrays import LEARNED_MAGIC, LearnedArrays

PLAIN_DIM = 128
"""Most dimensions that `plain` keeps: a turn of 15 tokens takes 2 KB, and few of a similarity's differences go."""

MIN_NORM = 1e-12
"""A projected state shorter than this stays as it is, not divided by almost nothing."""


class TokenProjection:
    """One map for passages and one for questions. Any thread may use it."""

    def __init__(self, name: str, passage: Matrix, question: Matrix) -> None:
        """Take two maps of shape (states' dim, dim). Raises ValueError where they do not fit each other."""
        if passage.ndim != 2 or passage.shape != question.shape:
            raise ValueError(f"the maps' shapes {passage.shape} and {question.shape} are not those of a projection")
        self.name = name
        self.dim: int = passage.shape[1]
        self._passage = passage
        self._question = question

    @classmethod
    def of(cls, learned: LearnedArrays) -> Self:
        """The projection of a learned file. Raises ValueError for one without a map of passages."""
        if "passage" not in learned.arrays:
            raise ValueError(f"the learned file {learned.digest} has no map of passages")
        passage = learned.arrays["passage"]
        name = f"{learned.kind}-{passage.shape[1]}-{learned.digest}"
        return cls(name, passage, learned.arrays.get("question", passage))

    @classmethod
    def plain(cls, dim: int) -> Self:
        """The map for states of `dim` dimensions without a learned one: as they are, or down to `PLAIN_DIM`."""
        if dim <= PLAIN_DIM:
            same = np.eye(dim, dtype=np.float32)
            return cls(f"identity-{dim}", same, same)
        mixed = _signed_cosines(dim)
        return cls(f"cosines-{PLAIN_DIM}", mixed, mixed)

    def of_passage(self, states: Matrix) -> Matrix:
        """Token states of a text that is kept, shape (tokens, states' dim), as rows of shape (tokens, `dim`)."""
        return _unit_rows(states @ self._passage)

    def of_question(self, states: Matrix) -> Matrix:
        """Token states of a question, as rows to compare with those of passages."""
        return _unit_rows(states @ self._question)


def _signed_cosines(dim: int) -> Matrix:
    """Orthonormal columns, shape (dim, `PLAIN_DIM`): cosine waves over the dimensions, signs thrown by a hash.

    The subsampled randomised cosine transform (Ailon and Chazelle 2009 with Hadamard's matrix): inner products are
    kept on average whatever the model's dimensions mean, and nothing depends on a library's random numbers.
    """
    thrown = np.frombuffer(hashlib.shake_256(LEARNED_MAGIC).digest(dim), np.uint8) & 1
    waves = np.linspace(1, dim - 1, PLAIN_DIM).astype(int)
    cosines = np.cos(np.pi * np.outer(np.arange(dim) + 0.5, waves) / dim) * np.sqrt(2 / dim)
    signed: Matrix = (cosines * np.where(thrown, 1.0, -1.0)[:, np.newaxis]).astype(np.float32)
    return signed


def _unit_rows(rows: Matrix) -> Matrix:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    units: Matrix = rows / np.maximum(lengths, np.float32(MIN_NORM))[:, np.newaxis]
    return units
