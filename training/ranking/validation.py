"""Cross-validation: recall on conversations that the weights were not fitted to."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from training.ranking.feature_list import Regime
from training.ranking.fitting import FittedRegimes, Floats, TrainingTable
from training.ranking.samples import Sample

KS = (5, 10)
"""Cut-offs of recall@k."""

FOLDS = 5
"""Folds of the conversations."""

Recalls = NDArray[np.float64]
"""Shape (questions, len(KS))."""


def question_weights(table: TrainingTable, left_out: frozenset[str] = frozenset()) -> Floats:
    """Return the weight of each question of the table, 0 for questions of the conversations left out."""
    return np.array([0.0 if one.conversation in left_out else one.weight for one in table.samples])


def recall_at_k(samples: Sequence[Sample], sums: Callable[[Sample], Floats]) -> Recalls:
    """Return recall@k of each question."""
    found = np.zeros((len(samples), len(KS)))
    for place, one in enumerate(samples):
        first = one.hits[np.argsort(-sums(one), kind="stable")[: max(KS)]]
        if one.question.labelled.named:
            found[place] = [first[:k].sum() / one.question.labelled.named for k in KS]
    return found


def held_out_recalls(
    tables: Mapping[Regime, TrainingTable], whole: FittedRegimes, samples: Sequence[Sample]
) -> Recalls:
    """Return the recall of each question, ranked by weights fitted without its fold."""
    names = sorted({one.conversation for one in samples})
    found = np.zeros((len(samples), len(KS)))
    for fold in range(FOLDS):
        held = frozenset(names[fold::FOLDS])
        people = tables["people"].fit(question_weights(tables["people"], held), whole.people)
        replies = tables["replies"].fit(question_weights(tables["replies"], held), whole.replies)
        places = [place for place, one in enumerate(samples) if one.conversation in held]
        found[places] = recall_at_k([samples[place] for place in places], FittedRegimes(people, replies).sums)
    return found
