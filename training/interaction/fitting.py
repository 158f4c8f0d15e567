"""Compute features and fit a logistic regression (scikit-learn, L2, `lbfgs`)."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack  # type: ignore[import-untyped]
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from agents.rules.interaction.classifier import (
    HASH_BUCKETS,
    CueTable,
    dense_features,
    fold_for_hashing,
    hash_ngrams,
    head_and_tail,
)
from schemas.state.interaction import INTERACTION_MODES
from training.interaction.examples import Turn
from training.interaction.vectors import Vectors

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

VECTOR_SCALE, PIECE_SCALE = 3.0, 4.0
"""Scales of the vector and of the hashed n-grams relative to the cues; by cross-validation, flat around these."""

INVERSE_REGULARISATION = 4.0
"""`C` of the regression, by cross-validation; accuracy is nearly the same from 1 to 6."""

ITERATIONS = 1500


def feature_matrix(turns: Sequence[Turn], vectors: Vectors, cues: CueTable) -> csr_matrix:
    """Return one row per turn: the scaled vector, the dense features, the scaled hashed n-grams."""
    rows, columns, shares, dense = [], [], [], []
    for row, turn in enumerate(turns):
        part = head_and_tail(turn.text)
        plain = fold_for_hashing(part)
        dense.append(dense_features(part, plain, len(turn.text), cues))
        found = hash_ngrams(plain)
        words = int(np.searchsorted(found, HASH_BUCKETS))
        for some in (found[:words], found[words:]):
            rows += [row] * len(some)
            columns += some.tolist()
            shares += [PIECE_SCALE / np.sqrt(len(some))] * len(some)
    sparse = csr_matrix((shares, (rows, columns)), shape=(len(turns), 2 * HASH_BUCKETS))
    return csr_matrix(
        hstack([csr_matrix(vectors.astype(np.float64) * VECTOR_SCALE), csr_matrix(np.array(dense)), sparse])
    )


def mode_indexes(turns: Sequence[Turn]) -> Labels:
    """Return the modes as indexes into `INTERACTION_MODES`."""
    return np.array([INTERACTION_MODES.index(turn.mode) for turn in turns])


def turn_weights(turns: Sequence[Turn]) -> Floats:
    """Return the weight of each turn: a conversation counts by the root of its turns, or a few long ones decide."""
    lengths = Counter(turn.conversation for turn in turns)
    return np.array([lengths[turn.conversation] ** -0.5 for turn in turns])


def fit_regression(rows: csr_matrix, modes: Labels, weights: Floats) -> LogisticRegression:
    """Fit the regression; deterministic."""
    return LogisticRegression(C=INVERSE_REGULARISATION, max_iter=ITERATIONS).fit(rows, modes, weights)


def classifier_arrays(model: LogisticRegression, dim: int, temperature: float) -> dict[str, Floats]:
    """Return the classifier's arrays, multiplied by `temperature`."""
    columns = model.coef_.T * temperature
    pieces_from = len(columns) - 2 * HASH_BUCKETS
    return {
        "vector_weights": columns[:dim] * VECTOR_SCALE,
        "value_weights": columns[dim:pieces_from],
        "bias": model.intercept_ * temperature,
        "piece_weights": columns[pieces_from:] * PIECE_SCALE,
    }
