"""How well heads find, measured on conversations that they were not fitted to."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from training.ranking.fitting import Fitted, Floats, Table
from training.ranking.samples import Sample

KS = (5, 10)
"""Recall is measured among so many first hits."""

FOLDS = 11
"""Parts that the conversations are divided into; each is ranked by weights that the others were fitted to."""

MIXED_COUNT = 0.5
"""How much a question counts that is asked among several conversations of one user: it is asked in its own as well."""

Recalls = NDArray[np.float64]
"""Shape (questions, len(KS))."""


def counts_of(table: Table, left_out: frozenset[str] = frozenset()) -> Floats:
    """How much each question of the table counts, without those of some conversations."""
    return np.array(
        [
            0.0 if one.conversation in left_out else 1.0 if one.question.user == one.conversation else MIXED_COUNT
            for one in table.samples
        ]
    )


def recalls(samples: Sequence[Sample], sums: Callable[[Sample], Floats]) -> Recalls:
    """The share of the evidence among the first hits, for each question."""
    found = np.zeros((len(samples), len(KS)))
    for place, one in enumerate(samples):
        first = one.hits[np.argsort(-sums(one), kind="stable")[: max(KS)]]
        if one.question.asked.named:
            found[place] = [first[:k].sum() / one.question.asked.named for k in KS]
    return found


def left_out(table: Table, whole: Fitted, samples: Sequence[Sample]) -> Recalls:
    """Recalls of each question by weights that have not seen its conversation, nor the others of its fold."""
    names = sorted({one.conversation for one in samples})
    found = np.zeros((len(samples), len(KS)))
    for fold in range(FOLDS):
        held = frozenset(names[fold::FOLDS])
        fitted = table.fit(counts_of(table, held), whole)
        places = [place for place, one in enumerate(samples) if one.conversation in held]
        found[places] = recalls([samples[place] for place in places], fitted.sums)
    return found
