"""Feature matrices of questions, for fitting and measuring."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agents.rules.ranking.features import RankingFeatures
from agents.rules.ranking.memory_features import (
    ModelVariant,
    QueryFeatures,
    compute_fields,
    first_stage_score,
    question_traits,
)
from agents.rules.ranking.ranking import first_stage_top
from training.ranking.library import Question

Matrix = NDArray[np.float32]

BY_HAND = {"importance": 0.6, "recency": 0.2, "identifier": 2.5}
"""Weights set by hand, as our conversations can't teach them: importance is set by the sender, recency is a preference
of the reader, and hardly a question of ours has an identifier. Importance counts like a slightly better match, recency
less; the only memory with the question's identifier ranks first, whatever else is asked."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Features of one question's memories, shape (memories, features), best first-stage score first.

    `weight` is how much the question counts, `replies` the trait of that name: the share of the weights for long
    replies. `by_hand` is the sum over the weights set by hand, `hits` marks the
    answering memories.
    """

    question: Question
    weight: float
    replies: float
    features: Matrix
    by_hand: Matrix
    hits: NDArray[np.bool_]

    @property
    def conversation(self) -> str:
        """The name of the question's conversation."""
        return self.question.conversation


def compute_sample(
    question: Question, variant: ModelVariant, names: Sequence[str], max_rows: int, weight: float = 1.0
) -> Sample:
    """Compute the features of the `max_rows` memories with the best first-stage scores."""
    query_features = restrict_to_variant(question.query_features, variant)
    fields = compute_fields(query_features)
    numbers = first_stage_top(first_stage_score(fields), question.admitted)
    scores = first_stage_score(fields)[numbers]
    numbers = numbers[np.argsort(-np.round(scores, 6), kind="stable")[:max_rows]]
    features = RankingFeatures(query_features, fields, numbers)
    columns = np.zeros((len(numbers), len(names)), np.float32)
    for place, name in enumerate(names):
        feature = features.of(name)
        if feature is not None:
            columns[:, place] = feature
    by_hand = np.zeros(len(numbers))
    for name, factor in BY_HAND.items():
        feature = features.of(name)
        by_hand += factor * (0.0 if feature is None else feature)
    hits = np.isin(numbers, list(question.evidence))
    replies = question_traits(query_features, ())["replies"]
    return Sample(question, weight, replies, columns, by_hand.astype(np.float32), hits)


def restrict_to_variant(query_features: QueryFeatures, variant: ModelVariant) -> QueryFeatures:
    """Remove the vector scores that a model variant does not use."""
    return replace(
        query_features,
        maxsim=query_features.maxsim if variant == "tokens" else None,
        dense=None if variant == "words" else query_features.dense,
    )
