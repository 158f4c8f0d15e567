"""Fit what the user's last turns say of a turn: a logistic regression over the classifier's own answers."""

from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]

from agents.rules.interaction.classifier import HISTORY_TURNS, conversation_features
from schemas.state.interaction import INTERACTION_MODES
from training.interaction.examples import Turn
from training.interaction.fitting import Floats, Labels, turn_weights
from training.interaction.validation import apply_threshold, folds_by_conversation

INVERSE_REGULARISATION = 0.3
"""`C` of the regression; flat from 0.1 to 3."""


def modes_before(shares: Floats, turns: Sequence[Turn]) -> list[list[str]]:
    """Return for each turn the answered modes of the last turns before it, oldest first."""
    answered = [INTERACTION_MODES[mode] for mode in apply_threshold(shares)]
    return [answered[row - min(len(turn.before), HISTORY_TURNS) : row] for row, turn in enumerate(turns)]


def fit_conversations(shares: Floats, modes: Labels, turns: Sequence[Turn]) -> tuple[Floats, dict[str, Floats]]:
    """Return each turn's probabilities in its conversation, cross-validated, and the arrays of the model.

    `shares` are cross-validated probabilities of the turns alone; those of first turns stay.
    """
    pairs = zip(shares, modes_before(shares, turns), strict=True)
    rows = np.array([conversation_features(alone, before) for alone, before in pairs])
    later = np.array([bool(turn.before) for turn in turns])
    weights = turn_weights(turns)
    together = shares.copy()
    for train, test in folds_by_conversation(modes, turns):
        fitted, seen = test[later[test]], train[later[train]]
        together[fitted] = _fit(rows[seen], modes[seen], weights[seen]).predict_proba(rows[fitted])
    regression = _fit(rows[later], modes[later], weights[later])
    return together, {"conversation_weights": regression.coef_.T, "conversation_bias": regression.intercept_}


def _fit(rows: Floats, modes: Labels, weights: Floats) -> LogisticRegression:
    regression = LogisticRegression(C=INVERSE_REGULARISATION, max_iter=1000)
    return regression.fit(rows, modes, weights / weights.mean())
