"""Takes what all texts have in common out of their pooled vectors.

Enters: pooled vectors of length 1 of a model whose vectors all point nearly the same way, as those of the e5 family do
(the cosine of unrelated texts is 0.75 and more there). Leaves: vectors of length 1 whose cosines spread around 0, as
the ranking expects them. Guaranteed: pure; the same centre for all texts of one side.

Taking the mean off is the first step of all-but-the-top, Mu and Viswanath 2018, https://arxiv.org/abs/1702.01417.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.vectors import Matrix, Vector
from streams.adapters.embedding.inference.unit_length import unit_vector

PASSAGE_MEAN, QUESTION_MEAN = "passage_mean", "question_mean"
"""The arrays of a learned file that hold the means, each of shape (1, dim)."""


@dataclass(frozen=True, slots=True)
class PooledCentre:
    """The mean vectors of passages and of questions; 0 for a model that needs none."""

    passage: Vector | float = 0.0
    question: Vector | float = 0.0

    @classmethod
    def of(cls, arrays: Mapping[str, Matrix]) -> "PooledCentre":
        """The centre that was learned; none where nothing was."""
        return cls(arrays[PASSAGE_MEAN][0], arrays[QUESTION_MEAN][0]) if PASSAGE_MEAN in arrays else cls()

    def of_passage(self, vector: Vector) -> Vector:
        """The vector of a text that is kept, less what passages have in common."""
        return _less(vector, self.passage)

    def of_question(self, vector: Vector) -> Vector:
        """The vector of a question, less what questions have in common."""
        return _less(vector, self.question)


def _less(vector: Vector, mean: Vector | float) -> Vector:
    return vector if isinstance(mean, float) else unit_vector(vector - mean)
