"""How well a map finds evidence: recall of late interaction alone, over the turn and over the turn and its neighbours.

A turn's score for a question is the weighted sum, over the question's tokens, of the greatest dot product with any
token of the turn (MaxSim: Khattab and Zaharia 2020), all projected and of length 1.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from schemas.vectors import Matrix
from streams.adapters.embedding.inference.token_grid import dequantise_tokens, quantise_tokens
from streams.adapters.embedding.inference.token_projection import TokenProjection
from training.projection.token_states import Haystack

Figures = NDArray[np.float64]
"""Shape (questions, 4): recall at 5 and at 10 over the turn, at 5 and at 10 over the turn and its neighbours."""

FOLDS = 5
CUTS = (5, 10)


def unseen(haystacks: Sequence[Haystack], fit: Callable[[Sequence[Haystack]], Matrix]) -> Figures:
    """Figures of questions about conversations that the map was not made of."""
    parts = []
    for fold in range(FOLDS):
        both = fit([one for place, one in enumerate(haystacks) if place % FOLDS != fold])
        parts += [recalls(one, TokenProjection("unseen", both, both)) for one in haystacks[fold::FOLDS]]
    return np.concatenate(parts)


def recalls(haystack: Haystack, projection: TokenProjection) -> Figures:
    """Figures of each question, passages rounded to the grid as they are kept."""
    kept = dequantise_tokens(quantise_tokens(projection.of_passage(haystack.passages)))
    alike = projection.of_query(haystack.questions) @ kept.T
    best = np.maximum.reduceat(alike, haystack.begins, axis=1)
    ranked = [_ranked(haystack, of) for of in (best, _nearby(best, haystack))]
    return np.stack([_recall(haystack, order[:, :cut]) for order in ranked for cut in CUTS], axis=1)


def _ranked(haystack: Haystack, best: Matrix) -> NDArray[np.int64]:
    """The turns of each question, best first, from each token's greatest product with each turn."""
    scores = np.add.reduceat(best * haystack.weights[:, np.newaxis], haystack.asks, axis=0)
    return np.argsort(-scores, axis=1, kind="stable")


def _nearby(best: Matrix, haystack: Haystack) -> Matrix:
    """For each token the best of a turn, the one before and the one after in its session."""
    joined = np.diff(haystack.sessions) == 0
    wider = best.copy()
    wider[:, 1:] = np.where(joined, np.maximum(wider[:, 1:], best[:, :-1]), wider[:, 1:])
    wider[:, :-1] = np.where(joined, np.maximum(wider[:, :-1], best[:, 1:]), wider[:, :-1])
    return wider


def _recall(haystack: Haystack, found: NDArray[np.int64]) -> Figures:
    """The share of each question's evidence among what was found."""
    shares: Figures = np.take_along_axis(haystack.target, found, axis=1).sum(axis=1, dtype=np.float64)
    return shares
