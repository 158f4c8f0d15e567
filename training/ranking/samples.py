"""Signals of the memories of each question as numbers, ready to be fitted and measured."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agents.rules.ranking.features import RankingFeatures
from agents.rules.ranking.field_scores import compute_fields, first_stage_score
from agents.rules.ranking.query_features import ModelVariant, QueryFeatures
from agents.rules.ranking.ranking import first_stage_top
from training.ranking.library import Question

Matrix = NDArray[np.float32]

BY_HAND = {"importance": 0.6, "recency": 0.2, "identifier": 2.5}
"""Weights that no conversation of ours could teach: importance is its writer's word, recency what the reader wants, and
hardly a question of ours has an identifier. An important memory stands as far above a usual one as one that fits a
little better; a new one less; one that alone has the identifier of the question stands first, whatever else it asks."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One question: signals of its memories, shape (memories, signals), the most likely by the plain sum first.

    `by_hand` is what the weights that are not fitted add; `hits` says which memories answer; `named` is how many do,
    also those that the shortlist has lost.
    """

    question: Question
    signals: Matrix
    by_hand: Matrix
    hits: NDArray[np.bool_]

    @property
    def conversation(self) -> str:
        """Where the question comes from."""
        return self.question.conversation


def sample_of(question: Question, head: ModelVariant, names: Sequence[str], most: int) -> Sample:
    """The signals of a question's most likely memories, `most` of them or fewer."""
    clues = without(question.clues, head)
    fields = compute_fields(clues)
    numbers = first_stage_top(first_stage_score(fields), question.admitted)
    sums = first_stage_score(fields)[numbers]
    numbers = numbers[np.argsort(-np.round(sums, 6), kind="stable")[:most]]
    signals = RankingFeatures(clues, fields, numbers)
    columns = np.zeros((len(numbers), len(names)), np.float32)
    for place, name in enumerate(names):
        signal = signals.of(name)
        if signal is not None:
            columns[:, place] = signal
    by_hand = np.zeros(len(numbers))
    for name, weight in BY_HAND.items():
        signal = signals.of(name)
        by_hand += weight * (0.0 if signal is None else signal)
    hits = np.isin(numbers, list(question.evidence))
    return Sample(question, columns, by_hand.astype(np.float32), hits)


def without(clues: QueryFeatures, head: ModelVariant) -> QueryFeatures:
    """What is left where there are no token vectors, or no vectors."""
    return replace(
        clues, maxsim=clues.maxsim if head == "tokens" else None, dense=None if head == "words" else clues.dense
    )
