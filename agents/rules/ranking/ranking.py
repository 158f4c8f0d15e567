"""Rank memories by the log-odds of answering the question, and explain the hits. Pure.

A linear model over features of one boundary, in two stages: a fixed weighted sum selects the top memories, the model
scores these. Log-odds are rounded so that floating-point noise does not decide the order. Memories without a vector are
scored by the `words` model.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from modestream_client.hits import Scores

from agents.rules.index.columns import FloatArray, IntArray, Mask
from agents.rules.ranking.features import NEIGHBOUR_OFFSETS, LinearModel, PreparedFeatures, RankingFeatures
from agents.rules.ranking.memory_features import (
    FEATURE_SCALES,
    QueryFeatures,
    compute_fields,
    first_stage_score,
    matched_term_share,
    take_or_zero,
)


def calibrate_by_rank(by_words: FloatArray, by_all: FloatArray, embedded: Mask) -> FloatArray:
    """Return log-odds of all memories on the scale of the full model; shapes (memories,).

    Embedded memories keep `by_all`. Others get the `by_all` of the embedded memory with the same rank by `by_words`:
    interpolated between ranks, extrapolated with slope 1 beyond the first and the last. Without embedded memories,
    `by_words` is returned. With half of the turns of our conversations lacking a vector, recall@5 / recall@10 is
    66.8 / 75.9 %; with estimated vector scores 62.4 / 68.6 %, by words alone for all memories 62.5 / 71.6 %.
    """
    if not embedded.any():
        return by_words
    distinct, first = np.unique(np.sort(-by_words[embedded]), return_index=True)
    # Of ties by words take the best score: no memory may rank lower than by its words.
    ranks, scores = -distinct[::-1], np.sort(by_all[embedded])[::-1][first][::-1]
    vectorless = by_words[~embedded]
    beyond = np.maximum(vectorless - ranks[-1], 0.0) + np.minimum(vectorless - ranks[0], 0.0)
    calibrated = by_all.copy()
    calibrated[~embedded] = np.interp(vectorless, ranks, scores) + beyond
    return calibrated


SCORE_DECIMALS = 6
"""Decimals of scores and log-odds; smaller differences are noise."""


def log_odds_of(score: float) -> float:
    """Return the log-odds of a score; finite, as scores are rounded, to 0 and 1 as well."""
    inside = min(max(score, 10.0**-SCORE_DECIMALS), 1.0 - 10.0**-SCORE_DECIMALS)
    return math.log(inside / (1.0 - inside))


MAX_RERANKED = 1000
"""Memories scored by the model: ten times the maximum of a request, and all memories of most users."""

TOPIC_WEIGHT = 0.5
"""Added to the log-odds in a lexical merge if the question names the whole topic. Not measured: no labelled
conversations with topics exist."""


PROJECT_WEIGHT = 0.5
"""Added to the log-odds of memories of the project asked in, where several are searched. Chosen, not fitted: fitted to
questions that are all about that project it has no bound. With 0.5 the gain outweighs the loss where more than one
question in three is about it (`python -m training.ranking --projects`)."""


@dataclass(frozen=True, slots=True)
class VectorlessRows:
    """Rows without a vector: the model that scores them, and the calibration offset; shapes (rows,)."""

    model: LinearModel
    mask: Mask
    bias: FloatArray


@dataclass(frozen=True, slots=True)
class Ranking:
    """Scored memories: their numbers, log-odds and features; shapes (rows,).

    `vectorless` is None if one model scored all rows. `topics` is the share of its topic that the question names, or
    None if topics were not read; `in_project` marks memories of the project asked in, None without a preference.
    """

    numbers: IntArray
    log_odds: FloatArray
    features: RankingFeatures
    model: LinearModel
    vectorless: VectorlessRows | None = None
    topics: FloatArray | None = None
    in_project: Mask | None = None

    def with_topics(self, topics: FloatArray) -> "Ranking":
        return replace(self, log_odds=np.round(self.log_odds + TOPIC_WEIGHT * topics, SCORE_DECIMALS), topics=topics)

    def with_project(self, in_project: Mask) -> "Ranking":
        log_odds = np.round(self.log_odds + PROJECT_WEIGHT * in_project.astype(np.float64), SCORE_DECIMALS)
        return replace(self, log_odds=log_odds, in_project=in_project)

    def best(self, top_k: int, id_of: Mapping[int, str]) -> list[int]:
        """Return the places in `numbers` of the best memories, best first, ties by id."""
        rows = np.arange(len(self.numbers))
        if len(rows) > top_k:
            worst = np.partition(self.log_odds, -top_k)[-top_k]
            rows = rows[self.log_odds >= worst]
        ids = [id_of[number] for number in self.numbers[rows].tolist()]
        odds = self.log_odds[rows].tolist()
        order = sorted(range(len(ids)), key=lambda index: (-odds[index], ids[index]))[:top_k]
        best: list[int] = rows[order].tolist()
        return best

    def scored_by(self, row: int) -> tuple[LinearModel, float | None]:
        """Return the model of the memory at this place, and its calibration offset if it has no vector."""
        if self.vectorless is None or not self.vectorless.mask[row]:
            return self.model, None
        return self.vectorless.model, float(self.vectorless.bias[row])

    def score(self, row: int) -> float:
        """Return the probability that the memory answers: the logistic function of its log-odds."""
        return round(1.0 / (1.0 + math.exp(-float(self.log_odds[row]))), SCORE_DECIMALS)


def rank_memories(
    features: QueryFeatures,
    admitted: Mask,
    model: LinearModel,
    by_words: LinearModel | None = None,
    prepared: PreparedFeatures | None = None,
    candidates: int = MAX_RERANKED,
) -> Ranking:
    """Rank the admitted memories; `by_words` scores those without a vector if others have one.

    Features `prepared` for the same memories are not recomputed.
    """
    fields = compute_fields(features)
    numbers = first_stage_top(first_stage_score(fields), admitted, candidates)
    ranking_features = RankingFeatures(features, fields, numbers, prepared)
    log_odds = ranking_features.log_odds(model)
    embedded = features.embedded[numbers]
    if by_words is None or features.dense is None or embedded.all():
        return Ranking(numbers, np.round(log_odds, SCORE_DECIMALS), ranking_features, model)
    lexical = ranking_features.log_odds(by_words)
    calibrated = calibrate_by_rank(np.round(lexical, SCORE_DECIMALS), log_odds, embedded)
    vectorless = VectorlessRows(by_words, ~embedded, calibrated - lexical)
    return Ranking(numbers, np.round(calibrated, SCORE_DECIMALS), ranking_features, model, vectorless)


def first_stage_top(scores: FloatArray, admitted: Mask, limit: int = MAX_RERANKED) -> IntArray:
    """Return the admitted memories with the greatest scores, including all ties for the last place."""
    numbers = np.flatnonzero(admitted)
    if len(numbers) <= limit:
        return numbers
    descending = -np.round(scores[numbers], SCORE_DECIMALS)
    # Partition from the small end: most memories tie for the lowest score, and selecting among ties is slow.
    best: IntArray = numbers[descending <= np.partition(descending, limit - 1)[limit - 1]]
    return best


INTERCEPT_TEXT = "where every memory begins"

CALIBRATION_TEXT = "calibration of a memory without a vector"

_FIELD_TEXTS = {
    "late": "its meaning, word by word",
    "dense": "its meaning as a whole",
    "whole": "its meaning as a whole",
    "words": "words of the question that it has",
    "cover": "words of the question that it has",
}
_LENGTH_FEATURES = ("length", "longer", "length2", "relative_length")
_MEMORY_FEATURE_TEXTS: Mapping[str, tuple[str, ...]] = {
    "who said it": ("named", "only_named", "not_named", "user", "assistant", "system", "tool"),
    "when it was said": ("said_then", "lateness", "recency"),
    "its length and its place in the conversation": (*_LENGTH_FEATURES, "first", "second", "last", "standing"),
    "the turns before and after it": ("asked_before", "asked_after"),
    "names of the question that it has": ("entity", "identifier"),
    "its importance": ("importance",),
}


class Explanation:
    """Scores and contributions of the hits of one answer, by place in the ranking."""

    def __init__(self, features: QueryFeatures, ranking: Ranking) -> None:
        size = len(features.columns.live)
        zeros = np.zeros(size)
        dense, maxsim = (
            zeros if scores is None else scores * features.embedded for scores in (features.dense, features.maxsim)
        )
        lexical = features.lexical["words"] / FEATURE_SCALES["words"].steps
        self._ranking = ranking
        self._feature_values: Mapping[str, FloatArray] = {
            "dense": dense,
            "late": maxsim,
            "lexical": lexical,
            "neighbours": (_neighbour_mean(dense, features) + _neighbour_mean(lexical, features)) / 2,
            "recency": features.recency,
            "importance": features.columns.importance,
            "entity": matched_term_share(features.entities, size),
            "speaker": features.named.astype(np.float64),
        }

    def scores(self, row: int) -> Scores:
        """Return the feature values of one hit, clipped to 0..1."""
        number = int(self._ranking.numbers[row])
        values = {name: float(feature[number]) for name, feature in self._feature_values.items()}
        return Scores(**{name: round(min(max(value, 0.0), 1.0), SCORE_DECIMALS) for name, value in values.items()})

    def contributions(self, row: int) -> dict[str, float]:
        """Return the contribution of each group of features to the log-odds, greatest absolute value first.

        The sum is the log-odds, up to rounding: score = 1 / (1 + exp(-sum)).
        """
        model, bias = self._ranking.scored_by(row)
        contributions: dict[str, float] = {INTERCEPT_TEXT: model.intercept}
        for name, weight in model.weights.items():
            feature = self._ranking.features.of(name)
            if feature is not None:
                text = describe_feature(name)
                contributions[text] = contributions.get(text, 0.0) + weight * float(feature[row])
        if bias is not None:
            contributions[CALIBRATION_TEXT] = bias
        if self._ranking.topics is not None:
            contributions["its topic"] = TOPIC_WEIGHT * float(self._ranking.topics[row])
        if (in_project := self._ranking.in_project) is not None:
            contributions["its project"] = PROJECT_WEIGHT * float(in_project[row])
        rounded = {text: round(value, SCORE_DECIMALS) for text, value in contributions.items()}
        return dict(sorted(rounded.items(), key=lambda item: -abs(item[1])))


def _neighbour_mean(values: FloatArray, features: QueryFeatures) -> FloatArray:
    return (take_or_zero(values, features.order.before) + take_or_zero(values, features.order.after)) / 2


def describe_feature(name: str) -> str:
    """Return a description for users; many features share one.

    Weights for short turns and for long replies have the same description.
    """
    name = name.removeprefix("?people*").removeprefix("?replies*")
    if name == "always":
        return INTERCEPT_TEXT
    parts = [part for part in name.split("*") if not part.startswith("?")]
    for part in parts:
        if part == "around" or part[-2:] in NEIGHBOUR_OFFSETS or part.endswith((".answers", ".partner")):
            return "the turns before and after it"
        if part == "conversation" or part.endswith(".best"):
            return "the rest of its conversation"
        if text := _FIELD_TEXTS.get(part.partition(".")[0]):
            return text
    if name.startswith("?"):
        return "what the question asks for"
    texts = _MEMORY_FEATURE_TEXTS.items()
    return next((text for text, names in texts if parts[0] in names), "what it looks like")
