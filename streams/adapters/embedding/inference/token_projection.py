"""The linear projection of token states to fewer dimensions, for late interaction.

Enters: finite token states of any norm, shape (tokens, states' dim). Leaves: a unit row for each state, shape (tokens,
`dim`), for a query or for a passage; the dot product of a query's row and a passage's row is the similarity of the two
tokens, -1..1. Guaranteed: pure; a row depends on its own state alone, up to rounding; no states give no rows.

A learned projection has the arrays `passage` and, if the sides differ, `question` (`learned_arrays`), each of shape
(states' dim, `dim`). Its name ends with a hash of the file, so another file is another vector space. `plain` is for
models without a learned one.
"""

import hashlib
from typing import Self

import numpy as np

from schemas.vectors import Matrix
from streams.adapters.embedding.inference.learned_arrays import LEARNED_MAGIC, LearnedArrays

PLAIN_DIM = 128
"""Most dimensions of `plain`: a turn of 15 tokens takes 2 KB, and similarities change little."""

MIN_NORM = 1e-12
"""Lower bound of the divisor when a projected state is normalised."""


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
        """Return the map without a learned one: the identity, or down to `PLAIN_DIM` dimensions."""
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
