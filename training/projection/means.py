"""Means of a model's pooled vectors, if they are long enough to subtract. Pure."""

from collections.abc import Mapping, Sequence

import numpy as np

from schemas.models.vectors import Matrix
from streams.adapters.embedding.inference.fastembed_model import PASSAGE_MEAN, QUESTION_MEAN
from training.projection.token_states import Haystack

MIN_MEAN_LENGTH = 0.5
"""Minimum length of a subtracted mean: multilingual-e5-small has 0.9; MiniLM has 0.2, and needs no correction."""


def common_means(haystacks: Sequence[Haystack]) -> Mapping[str, Matrix]:
    """Return the means of passages and of questions, each of shape (1, dim); an empty mapping if one is short."""
    both: Matrix = np.mean([one.means for one in haystacks], axis=0)
    if np.linalg.norm(both, axis=1).min() < MIN_MEAN_LENGTH:
        return {}
    return {PASSAGE_MEAN: both[:1], QUESTION_MEAN: both[1:]}
