"""Measure a projection: recall of late interaction alone, of single turns and of turns with their neighbours.

The score of a turn is MaxSim (Khattab and Zaharia 2020): the weighted sum, over the question's tokens, of the greatest
dot product with any token of the turn, all projected and of length 1.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from schemas.models.vectors import Matrix
from streams.adapters.embedding.inference.token_vectors import TokenProjection, dequantise_tokens, quantise_tokens
from training.projection.token_states import Haystack

Figures = NDArray[np.float64]
"""Shape (questions, 4): recall@5 and recall@10 of single turns, then of turns with their neighbours."""

FOLDS = 5
CUTS = (5, 10)


def cross_validate(haystacks: Sequence[Haystack], fit: Callable[[Sequence[Haystack]], Matrix]) -> Figures:
    """Cross-validate: measure each conversation with a map learned from the other folds."""
    parts = []
    for fold in range(FOLDS):
        learned = fit([one for place, one in enumerate(haystacks) if place % FOLDS != fold])
        parts += [recalls(one, TokenProjection("unseen", learned, learned)) for one in haystacks[fold::FOLDS]]
    return np.concatenate(parts)


def recalls(haystack: Haystack, projection: TokenProjection) -> Figures:
    """Return the figures of each question; passages are quantised as in storage."""
    passages = dequantise_tokens(quantise_tokens(projection.of_passage(haystack.passages)))
    products = projection.of_query(haystack.questions) @ passages.T
    best = np.maximum.reduceat(products, haystack.begins, axis=1)
    ranked = [_ranked(haystack, scores) for scores in (best, _with_neighbours(best, haystack))]
    return np.stack([_recall(haystack, order[:, :cut]) for order in ranked for cut in CUTS], axis=1)


def _ranked(haystack: Haystack, best: Matrix) -> NDArray[np.int64]:
    """Return the turns of each question, best first, from each token's greatest product with each turn."""
    scores = np.add.reduceat(best * haystack.weights[:, np.newaxis], haystack.asks, axis=0)
    return np.argsort(-scores, axis=1, kind="stable")


def _with_neighbours(best: Matrix, haystack: Haystack) -> Matrix:
    """Return for each token the maximum over a turn and its neighbours in the session."""
    same_session = np.diff(haystack.sessions) == 0
    maxima = best.copy()
    maxima[:, 1:] = np.where(same_session, np.maximum(maxima[:, 1:], best[:, :-1]), maxima[:, 1:])
    maxima[:, :-1] = np.where(same_session, np.maximum(maxima[:, :-1], best[:, 1:]), maxima[:, :-1])
    return maxima


def _recall(haystack: Haystack, found: NDArray[np.int64]) -> Figures:
    """Return the share of each question's evidence among the turns found."""
    shares: Figures = np.take_along_axis(haystack.target, found, axis=1).sum(axis=1, dtype=np.float64)
    return shares
