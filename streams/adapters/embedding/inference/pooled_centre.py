"""Centres pooled vectors: subtracts the mean vector of all texts.

Enters: pooled unit vectors of an anisotropic model, such as the e5 family (cosine of unrelated texts: 0.75 and more).
Leaves: unit vectors with cosines around 0, as the ranking expects them. Guaranteed: pure; one mean for all passages,
one for all queries.

Method: the first step of all-but-the-top, Mu and Viswanath 2018, https://arxiv.org/abs/1702.01417.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from schemas.models.vectors import Matrix, Vector

PASSAGE_MEAN, QUESTION_MEAN = "passage_mean", "question_mean"
"""The names of the means in a file of learned arrays, each of shape (1, dim)."""

MIN_NORM = 1e-12
"""Lower bound of the divisor; the value is fastembed's own."""


@dataclass(frozen=True, slots=True)
class PooledCentre:
    """The mean vectors of passages and of queries; 0 for a model that needs none."""

    passage: Vector | float = 0.0
    query: Vector | float = 0.0

    @classmethod
    def of(cls, arrays: Mapping[str, Matrix]) -> "PooledCentre":
        """Return the learned means; without them vectors stay as they are."""
        return cls(arrays[PASSAGE_MEAN][0], arrays[QUESTION_MEAN][0]) if PASSAGE_MEAN in arrays else cls()

    def of_passage(self, vector: Vector) -> Vector:
        """Centre the vector of a passage."""
        return _centred(vector, self.passage)

    def of_query(self, vector: Vector) -> Vector:
        """Centre the vector of a query."""
        return _centred(vector, self.query)


def _centred(vector: Vector, mean: Vector | float) -> Vector:
    return vector if isinstance(mean, float) else unit_vector(vector - mean)


def unit_vector(vector: Vector) -> Vector:
    """Return the vector scaled to length 1."""
    scaled: Vector = vector / max(float(np.sqrt(np.dot(vector, vector))), MIN_NORM)
    return scaled
