"""Cross-validate the classifier: five folds, grouped by conversation."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix  # type: ignore[import-untyped]
from sklearn.model_selection import StratifiedGroupKFold  # type: ignore[import-untyped]

from agents.rules.interaction.stability import MIN_MODE_CONFIDENCE
from schemas.state.interaction import INTERACTION_MODES
from training.interaction.examples import Turn
from training.interaction.fitting import fit_regression, turn_weights

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

FOLDS, SEED = 5, 0

GENERAL = INTERACTION_MODES.index("GENERAL")


@dataclass(frozen=True, slots=True)
class Score:
    """Precision and recall of one class, and its number of turns."""

    precision: float
    recall: float
    turns: int

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def cross_validated_logits(rows: csr_matrix, modes: Labels, turns: Sequence[Turn]) -> Floats:
    """Return the logits of each turn by a model that was trained without its conversation; shape (turns, 5)."""
    logits = np.zeros((len(modes), len(INTERACTION_MODES)))
    weights = turn_weights(turns)
    for train, test in folds_by_conversation(modes, turns):
        logits[test] = fit_regression(rows[train], modes[train], weights[train]).decision_function(rows[test])
    return logits


def folds_by_conversation(modes: Labels, turns: Sequence[Turn]) -> Iterator[tuple[Labels, Labels]]:
    """Return the rows to train and to test by, for each fold."""
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=SEED)
    yield from folds.split(modes, modes, [turn.conversation for turn in turns])


def apply_threshold(shares: Floats) -> Labels:
    """Return the mode of each turn; GENERAL below the confidence threshold."""
    return np.where(is_confident(shares), shares.argmax(axis=1), GENERAL)


def answer_confidences(shares: Floats) -> Floats:
    """Return the confidence of each answer: below the threshold it is the probability of GENERAL."""
    return np.where(is_confident(shares), shares.max(axis=1), shares[:, GENERAL])


def is_confident(shares: Floats) -> NDArray[np.bool_]:
    """Return for each turn whether its likeliest mode reaches the confidence threshold."""
    confident: NDArray[np.bool_] = shares.max(axis=1) >= MIN_MODE_CONFIDENCE
    return confident


def scores(answered: Labels, modes: Labels) -> list[Score]:
    """Return one score per mode, in the order of `INTERACTION_MODES`."""
    return [_score(answered == mode, modes == mode) for mode in range(len(INTERACTION_MODES))]


def confusion(answered: Labels, modes: Labels) -> NDArray[np.int64]:
    """Return the confusion matrix: true modes in rows, answered modes in columns."""
    table = np.zeros((len(INTERACTION_MODES), len(INTERACTION_MODES)), np.int64)
    np.add.at(table, (modes, answered), 1)
    return table


def _score(answered: NDArray[np.bool_], true: NDArray[np.bool_]) -> Score:
    right = int((answered & true).sum())
    return Score(right / max(1, int(answered.sum())), right / max(1, int(true.sum())), int(true.sum()))
