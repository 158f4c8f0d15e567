"""The order of the hits: how likely each memory is to answer, by a linear model over signals. Pure.

Enters: the clues of a question and a head of weights. Leaves: log-odds for every memory of the boundary, rounded, so
that noise of floating point decides no order. A plain sum chooses which memories are weighed with care; the others
stand behind them. What has no vector yet is weighed by words alone, and stands among the others where these put it. All
signals come from memories of one boundary, so nothing that another user stores can move a score.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from agents.rules.index.columns import FloatArray, IntArray, Mask
from agents.rules.ranking.features import RankingFeatures
from agents.rules.ranking.field_scores import compute_fields, first_stage_score
from agents.rules.ranking.query_features import QueryFeatures
from agents.rules.ranking.rank_calibration import calibrate_by_rank
from agents.rules.ranking.weights import LinearModel

SCORE_DECIMALS = 6
"""Decimals of a score and of its log-odds: smaller differences are noise, and must not decide an order."""

MAX_RERANKED = 1000
"""Memories that are weighed with care: ten times the most that a request can ask for, and all that most users have."""

TOPIC_WEIGHT = 0.5
"""What a topic that the question names whole adds to the log-odds, where no model's sight does. No labelled
conversations with topics exist to measure it on."""


@dataclass(frozen=True, slots=True)
class VectorlessRows:
    """Memories without a vector, which another head weighs, and what its log-odds were raised by; shapes (weighed,)."""

    head: LinearModel
    mask: Mask
    bias: FloatArray


@dataclass(frozen=True, slots=True)
class Ranking:
    """The memories that were weighed, by number, with their log-odds and signals; shapes (weighed,).

    `vectorless` are those that were weighed apart, where there are any among others. `topics` is the share of its topic
    that the question names, where topics were read.
    """

    numbers: IntArray
    log_odds: FloatArray
    features: RankingFeatures
    head: LinearModel
    vectorless: VectorlessRows | None = None
    topics: FloatArray | None = None

    def with_topics(self, topics: FloatArray) -> "Ranking":
        """The same with topics as one more signal."""
        return replace(self, log_odds=np.round(self.log_odds + TOPIC_WEIGHT * topics, SCORE_DECIMALS), topics=topics)

    def best(self, top_k: int, id_of: Mapping[int, str]) -> list[int]:
        """The places in `numbers` of the best memories, best first, equal ones by id."""
        places = np.arange(len(self.numbers))
        if len(places) > top_k:
            worst = np.partition(self.log_odds, -top_k)[-top_k]
            places = places[self.log_odds >= worst]
        ids = [id_of[number] for number in self.numbers[places].tolist()]
        odds = self.log_odds[places].tolist()
        order = sorted(range(len(ids)), key=lambda one: (-odds[one], ids[one]))[:top_k]
        found: list[int] = places[order].tolist()
        return found

    def scored_by(self, place: int) -> tuple[LinearModel, float | None]:
        """The head that weighed the memory at this place, and what its log-odds were raised by if it has no vector."""
        if self.vectorless is None or not self.vectorless.mask[place]:
            return self.head, None
        return self.vectorless.head, float(self.vectorless.bias[place])

    def score(self, place: int) -> float:
        """How likely the memory is to answer, in 0..1: the logistic function of its log-odds."""
        return round(1.0 / (1.0 + math.exp(-float(self.log_odds[place]))), SCORE_DECIMALS)


def rank_memories(
    clues: QueryFeatures, admitted: Mask, head: LinearModel, by_words: LinearModel | None = None
) -> Ranking:
    """Weigh the admitted memories; `by_words` weighs those that have no vector, where others have one."""
    fields = compute_fields(clues)
    numbers = first_stage_top(first_stage_score(fields), admitted)
    signals = RankingFeatures(clues, fields, numbers)
    log_odds = _log_odds(signals, head, len(numbers))
    seen = clues.embedded[numbers]
    if by_words is None or clues.dense is None or seen.all():
        return Ranking(numbers, np.round(log_odds, SCORE_DECIMALS), signals, head)
    told = _log_odds(signals, by_words, len(numbers))
    found = calibrate_by_rank(np.round(told, SCORE_DECIMALS), log_odds, seen)
    return Ranking(
        numbers, np.round(found, SCORE_DECIMALS), signals, head, VectorlessRows(by_words, ~seen, found - told)
    )


def _log_odds(signals: RankingFeatures, head: LinearModel, size: int) -> FloatArray:
    log_odds = np.full(size, head.intercept)
    for name, weight in head.weights.items():
        signal = signals.of(name)
        if signal is not None:
            log_odds += weight * signal
    return log_odds


def first_stage_top(sums: FloatArray, admitted: Mask) -> IntArray:
    """The admitted memories with the greatest sums, by number; all that share the last place."""
    numbers = np.flatnonzero(admitted)
    if len(numbers) <= MAX_RERANKED:
        return numbers
    falling = -np.round(sums[numbers], SCORE_DECIMALS)
    # From the small end: most of many memories share the least sum, and a selection among equals is slow.
    best: IntArray = numbers[falling <= np.partition(falling, MAX_RERANKED - 1)[MAX_RERANKED - 1]]
    return best
