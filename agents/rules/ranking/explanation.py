"""Explain a hit: its feature values, and the contribution of each group of features to its score. Pure."""

from collections.abc import Mapping

import numpy as np
from modestream_client.hits import Scores

from agents.rules.index.columns import FloatArray
from agents.rules.ranking.field_scores import FEATURE_SCALES, matched_term_share
from agents.rules.ranking.memory_features import take_or_zero
from agents.rules.ranking.query_features import QueryFeatures
from agents.rules.ranking.ranking import SCORE_DECIMALS, TOPIC_WEIGHT, Ranking
from agents.rules.ranking.weights import NEIGHBOUR_OFFSETS

INTERCEPT_TEXT = "where every memory begins"
"""Description of the intercept."""

CALIBRATION_TEXT = "memories with a vector that its words stand beside"
"""Description of the calibration offset of a memory without a vector."""

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
        dense, maxsim = (zeros if one is None else one * features.embedded for one in (features.dense, features.maxsim))
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

    def scores(self, place: int) -> Scores:
        """Return the feature values of one hit, clipped to 0..1."""
        number = int(self._ranking.numbers[place])
        values = {name: float(feature[number]) for name, feature in self._feature_values.items()}
        return Scores(**{name: round(min(max(value, 0.0), 1.0), SCORE_DECIMALS) for name, value in values.items()})

    def contributions(self, place: int) -> dict[str, float]:
        """Return what each group of features adds to the log-odds, greatest absolute value first.

        The sum is the log-odds, up to rounding: score = 1 / (1 + exp(-sum)).
        """
        model, bias = self._ranking.scored_by(place)
        found: dict[str, float] = {INTERCEPT_TEXT: model.intercept}
        for name, weight in model.weights.items():
            feature = self._ranking.features.of(name)
            if feature is not None:
                text = describe_feature(name)
                found[text] = found.get(text, 0.0) + weight * float(feature[place])
        if bias is not None:
            found[CALIBRATION_TEXT] = bias
        if self._ranking.topics is not None:
            found["its topic"] = TOPIC_WEIGHT * float(self._ranking.topics[place])
        rounded = {text: round(value, SCORE_DECIMALS) for text, value in found.items()}
        return dict(sorted(rounded.items(), key=lambda item: -abs(item[1])))


def _neighbour_mean(values: FloatArray, features: QueryFeatures) -> FloatArray:
    """Return the mean over the turn before and the turn after; a missing turn counts 0."""
    return (take_or_zero(values, features.order.before) + take_or_zero(values, features.order.after)) / 2


def describe_feature(name: str) -> str:
    """Return a description for users; many features share one.

    The weights among short turns and among long replies are described alike.
    """
    name = name.removeprefix("?people*").removeprefix("?replies*")
    if name == "always":
        return INTERCEPT_TEXT
    parts = [part for part in name.split("*") if not part.startswith("?")]
    for part in parts:
        if text := _describe_field(part):
            return text
    if name.startswith("?"):
        return "what the question asks for"
    texts = _MEMORY_FEATURE_TEXTS.items()
    return next((text for text, names in texts if parts[0] in names), "what it looks like")


def _describe_field(part: str) -> str | None:
    if part == "around" or part[-2:] in NEIGHBOUR_OFFSETS or part.endswith((".answers", ".partner")):
        return "the turns before and after it"
    if part == "conversation" or part.endswith(".best"):
        return "the rest of its conversation"
    return _FIELD_TEXTS.get(part.partition(".")[0])
