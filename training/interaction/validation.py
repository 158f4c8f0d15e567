"""What the classifier makes of turns that it did not learn from: five folds, no conversation in two of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix  # type: ignore[import-untyped]
from sklearn.model_selection import StratifiedGroupKFold  # type: ignore[import-untyped]

from agents.rules.interaction.voting import MIN_MODE_CONFIDENCE
from schemas.interaction import INTERACTION_MODES
from training.interaction.examples import Turn
from training.interaction.fitting import fitted

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

FOLDS, SEED = 5, 0

GENERAL = INTERACTION_MODES.index("GENERAL")


@dataclass(frozen=True, slots=True)
class Score:
    """Of one class: shares of 0 to 1, and how many turns are of it."""

    precision: float
    recall: float
    turns: int

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def unseen_logits(rows: csr_matrix, modes: Labels, turns: Sequence[Turn]) -> Floats:
    """For each turn the logits of a model that learnt from the folds without its conversation; shape (turns, 5)."""
    logits = np.zeros((len(modes), len(INTERACTION_MODES)))
    folds = StratifiedGroupKFold(FOLDS, shuffle=True, random_state=SEED)
    for learnt, unseen in folds.split(rows, modes, [turn.conversation for turn in turns]):
        logits[unseen] = fitted(rows[learnt], modes[learnt]).decision_function(rows[unseen])
    return logits


def answers(shares: Floats) -> Labels:
    """The mode of each turn after the rule of the threshold."""
    return np.where(shares.max(axis=1) < MIN_MODE_CONFIDENCE, GENERAL, shares.argmax(axis=1))


def scores(answered: Labels, modes: Labels) -> list[Score]:
    """One score a mode, in the order of `INTERACTION_MODES`."""
    return [_score(answered == mode, modes == mode) for mode in range(len(INTERACTION_MODES))]


def confusion(answered: Labels, modes: Labels) -> NDArray[np.int64]:
    """How many of each mode (rows) were answered as each mode (columns)."""
    table = np.zeros((len(INTERACTION_MODES), len(INTERACTION_MODES)), np.int64)
    np.add.at(table, (modes, answered), 1)
    return table


def _score(answered: NDArray[np.bool_], true: NDArray[np.bool_]) -> Score:
    right = int((answered & true).sum())
    return Score(right / max(1, int(answered.sum())), right / max(1, int(true.sum())), int(true.sum()))
