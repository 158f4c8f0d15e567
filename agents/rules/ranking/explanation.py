"""Why a hit stands where it stands: its signals for machines, and what each gave or took for people. Pure."""

from collections.abc import Mapping

import numpy as np

from agents.rules.index.columns import FloatArray
from agents.rules.ranking.conversation_features import take_or_zero
from agents.rules.ranking.feature_names import CALIBRATION_TEXT, INTERCEPT_TEXT, describe_feature
from agents.rules.ranking.lexical_features import matched_term_share
from agents.rules.ranking.query_features import QueryFeatures
from agents.rules.ranking.ranking import SCORE_DECIMALS, TOPIC_WEIGHT, Ranking
from agents.rules.ranking.scaling import FEATURE_SCALES
from schemas.retrieval import Scores


class Explanation:
    """Tells of each of the hits of one answer."""

    def __init__(self, clues: QueryFeatures, ranking: Ranking) -> None:
        """Take what the hits were ranked by."""
        size = len(clues.columns.live)
        nothing = np.zeros(size)
        dense, late = (nothing if one is None else one * clues.embedded for one in (clues.dense, clues.maxsim))
        lexical = clues.lexical["words"] / FEATURE_SCALES["words"].steps
        self._ranking = ranking
        self._signals: Mapping[str, FloatArray] = {
            "dense": dense,
            "late": late,
            "lexical": lexical,
            "neighbours": (_beside(dense, clues) + _beside(lexical, clues)) / 2,
            "recency": clues.recency,
            "importance": clues.columns.importance,
            "entity": matched_term_share(clues.entities, size),
            "speaker": clues.named.astype(np.float64),
        }

    def scores(self, place: int) -> Scores:
        """The signals of the memory at this place of the ranking, each in 0..1."""
        number = int(self._ranking.numbers[place])
        values = {name: float(signal[number]) for name, signal in self._signals.items()}
        return Scores(**{name: round(min(max(value, 0.0), 1.0), SCORE_DECIMALS) for name, value in values.items()})

    def contributions(self, place: int) -> dict[str, float]:
        """What each group of signals adds to the log-odds of the score, or takes; the greatest first.

        They sum to the log-odds, up to the rounding: score = 1 / (1 + exp(-sum)).
        """
        head, raised = self._ranking.scored_by(place)
        found: dict[str, float] = {INTERCEPT_TEXT: head.intercept}
        for name, weight in head.weights.items():
            signal = self._ranking.features.of(name)
            if signal is not None:
                words = describe_feature(name)
                found[words] = found.get(words, 0.0) + weight * float(signal[place])
        if raised is not None:
            found[CALIBRATION_TEXT] = raised
        if self._ranking.topics is not None:
            found["its topic"] = TOPIC_WEIGHT * float(self._ranking.topics[place])
        rounded = {words: round(value, SCORE_DECIMALS) for words, value in found.items()}
        return dict(sorted(rounded.items(), key=lambda item: -abs(item[1])))


def _beside(signal: FloatArray, clues: QueryFeatures) -> FloatArray:
    """The mean of a signal over the turn before and the turn after; a turn that is not there counts 0."""
    mean: FloatArray = (take_or_zero(signal, clues.order.before) + take_or_zero(signal, clues.order.after)) / 2
    return mean
