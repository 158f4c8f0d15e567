"""What all pooled vectors of a model have in common, where that is much. Pure."""

from collections.abc import Mapping, Sequence

import numpy as np

from schemas.vectors import Matrix
from streams.adapters.embedding.inference.pooled_centre import PASSAGE_MEAN, QUESTION_MEAN
from training.projection.token_states import Haystack

MUCH = 0.5
"""The length of a mean from which on it is taken off: those of multilingual-e5-small have 0.9, MiniLM's have 0.2, and
its cosines serve as they are."""


def means(haystacks: Sequence[Haystack]) -> Mapping[str, Matrix]:
    """The means of passages and of questions, each of shape (1, dim); none where they are short."""
    both: Matrix = np.mean([one.means for one in haystacks], axis=0)
    if np.linalg.norm(both, axis=1).min() < MUCH:
        return {}
    return {PASSAGE_MEAN: both[:1], QUESTION_MEAN: both[1:]}
