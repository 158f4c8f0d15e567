"""Fit the linear models that rank answering turns first; deterministic, numpy only.

The loss is the listwise softmax cross-entropy of ListNet's top-one probabilities (Cao et al., "Learning to Rank: From
Pairwise Approach to Listwise Approach", 2007), with L2 on the weights of features scaled to deviation 1. It is convex;
Newton's method minimises it in about ten steps. Scale and intercept are then calibrated by a logistic regression on the
weighted sum (Platt 1999), so that scores are probabilities.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.rules.ranking.features import DATA_DIGEST
from agents.rules.ranking.memory_features import MODEL_VARIANTS, ModelVariant
from schemas.messages.turns import Turn
from training.ranking.conversations import Conversation
from training.ranking.feature_list import REGIMES, Regime, must_help, regime_features
from training.ranking.samples import BY_HAND, Sample

Floats = NDArray[np.float64]

L2_STRENGTH = 300.0
"""The best of 40, 100, 200, 300 and 400 by cross-validation; none is more than half a point worse."""

MAX_FITTED_ROWS = 60
"""Memories per question used for fitting, best first-stage scores first; lower ones don't compete."""

MAX_STEPS = 30
"""More than Newton's method needs."""

MIN_IMPROVEMENT = 1e-4
"""Improvement of the loss per question at which fitting stops."""

MIN_EFFECT = 0.005
"""Change of the log-odds per deviation of a feature, below which the feature is removed."""


@dataclass(frozen=True, slots=True)
class FittedModel:
    """log-odds = intercept + features @ weights + by_hand x (sum over the weights set by hand)."""

    weights: Floats
    by_hand: float
    intercept: float

    def log_odds(self, sample: Sample) -> Floats:
        """Return the log-odds of a question's memories."""
        sums: Floats = sample.features.astype(np.float64) @ self.weights + self.by_hand * sample.by_hand
        return sums + self.intercept

    def named(self, names: Sequence[str], deviations: Floats) -> dict[str, float]:
        """Return weights by name, greatest first, including those set by hand, without those of no effect."""
        kept = np.abs(self.weights) * deviations >= MIN_EFFECT
        found = {name: float(self.weights[place]) for place, name in enumerate(names) if kept[place]}
        found |= {name: weight * self.by_hand for name, weight in BY_HAND.items()}
        return {name: round(value, 4) for name, value in sorted(found.items(), key=lambda one: (-abs(one[1]), one[0]))}


@dataclass(frozen=True, slots=True)
class FittedRegimes:
    """The weights among short turns and those among long replies; a question's `replies` says how much of each."""

    people: FittedModel
    replies: FittedModel

    def sums(self, sample: Sample) -> Floats:
        """Return the log-odds of a question's memories."""
        people, replies = self.people.log_odds(sample), self.replies.log_odds(sample)
        return np.round((1.0 - sample.replies) * people + sample.replies * replies, 6)

    def named(self, names: Sequence[str], deviations: Mapping[Regime, Floats]) -> dict[str, float]:
        """Return the weights of one linear model, greatest first: each feature crossed with its regime."""
        found = {"?replies*always": round(self.replies.intercept - self.people.intercept, 4)}
        models: Mapping[Regime, FittedModel] = {"people": self.people, "replies": self.replies}
        for regime, model in models.items():
            weights = model.named(names, deviations[regime])
            found |= {f"?{regime}*{name}": weight for name, weight in weights.items()}
        return dict(sorted(found.items(), key=lambda one: (-abs(one[1]), one[0])))


class TrainingTable:
    """The rows of many questions, concatenated."""

    def __init__(self, samples: Sequence[Sample], names: Sequence[str], fitted: Collection[str] | None = None) -> None:
        """Take samples and the names of their features; samples without an answer among the rows are skipped.

        `fitted` are the features that get a weight, by default all.
        """
        self.names = names
        self.is_fitted = np.array([fitted is None or name in fitted for name in names])
        kept = [one for one in samples if one.hits[:MAX_FITTED_ROWS].any()]
        self.samples = kept
        self.sizes = np.array([len(one.features[:MAX_FITTED_ROWS]) for one in kept])
        self.features = np.concatenate([one.features[:MAX_FITTED_ROWS] for one in kept])
        self.by_hand = np.concatenate([one.by_hand[:MAX_FITTED_ROWS] for one in kept])
        self.hits = np.concatenate([one.hits[:MAX_FITTED_ROWS] for one in kept])
        self.deviations = self.features.std(axis=0).astype(np.float64) + 1e-6
        self.scaled = self.features / self.deviations.astype(np.float32)

    def fit(self, question_weights: Floats, start: FittedModel | None = None) -> FittedModel:
        """Fit with one weight per question; 0 leaves a question out.

        Features that must help but get a negative weight are removed, and the others are refitted.
        """
        rows = _SelectedRows(self, question_weights)
        weights = np.zeros(len(self.names)) if start is None else start.weights / start.by_hand * self.deviations
        free = self.is_fitted.copy() if start is None else weights != 0
        while True:
            weights = _minimise(rows, weights, free)
            against = [place for place, name in enumerate(self.names) if must_help(name) and weights[place] < 0]
            if not against:
                break
            free[against], weights[against] = False, 0.0
        slope, intercept = _calibrate(rows.sums(weights), rows.hits)
        return FittedModel(slope * weights / self.deviations, slope, intercept)


def _minimise(rows: "_SelectedRows", weights: Floats, free: NDArray[np.bool_]) -> Floats:
    """Return the weights with the least loss, starting from these; weights that are not free stay 0."""
    loss = rows.loss(weights)
    for _ in range(MAX_STEPS):
        step = rows.step(weights, free)
        while (new := rows.loss(weights - step)) > loss and np.abs(step).max() > MIN_IMPROVEMENT:
            step = step / 2
        if loss - new < MIN_IMPROVEMENT * len(rows.question_weights):
            break
        weights, loss = weights - step, new
    return weights


class _SelectedRows:
    """The rows of the questions with a weight."""

    def __init__(self, table: TrainingTable, question_weights: Floats) -> None:
        questions = question_weights > 0
        rows = np.repeat(questions, table.sizes)
        self.sizes = table.sizes[questions]
        self.question_weights = question_weights[questions]
        self.starts = np.cumsum([0, *self.sizes])[:-1]
        self.scaled, self.by_hand, self.hits = table.scaled[rows], table.by_hand[rows], table.hits[rows]
        hits = np.add.reduceat(self.hits.astype(np.float64), self.starts)
        self.targets = self.hits / np.repeat(hits, self.sizes)
        self.row_weights = np.repeat(self.question_weights, self.sizes)

    def sums(self, weights: Floats) -> Floats:
        found: Floats = (self.scaled @ weights.astype(np.float32)).astype(np.float64) + self.by_hand
        return found

    def loss(self, weights: Floats) -> float:
        sums = self.sums(weights)
        _, logs = self._shares(sums)
        missed = (self.question_weights * logs).sum() - (self.row_weights * self.targets * sums).sum()
        return float(missed + 0.5 * L2_STRENGTH * (weights @ weights))

    def _shares(self, sums: Floats) -> tuple[Floats, Floats]:
        """Return the softmax of each row within its question, and the log-sum-exp of each question."""
        most = np.maximum.reduceat(sums, self.starts)
        powers = np.exp(sums - np.repeat(most, self.sizes))
        totals = np.add.reduceat(powers, self.starts)
        return powers / np.repeat(totals, self.sizes), np.log(totals) + most

    def step(self, weights: Floats, free: NDArray[np.bool_]) -> Floats:
        scaled = self.scaled[:, free]
        shares, _ = self._shares(self.sums(weights))
        gradient = scaled.T @ ((shares - self.targets) * self.row_weights).astype(np.float32)
        rooted = scaled * np.sqrt(shares * self.row_weights).astype(np.float32)[:, np.newaxis]
        means = np.add.reduceat(scaled * shares.astype(np.float32)[:, np.newaxis], self.starts, axis=0)
        means *= np.sqrt(self.question_weights).astype(np.float32)[:, np.newaxis]
        curvature = (rooted.T @ rooted - means.T @ means).astype(np.float64) + L2_STRENGTH * np.eye(int(free.sum()))
        found = np.zeros(len(weights))
        found[free] = np.linalg.solve(curvature, gradient.astype(np.float64) + L2_STRENGTH * weights[free])
        return found


def _calibrate(sums: Floats, hits: NDArray[np.bool_]) -> tuple[float, float]:
    """Return slope and intercept of a logistic regression of the hits on the sums, by Newton's method."""
    values = np.stack([sums, np.ones(len(sums))])
    found = np.array([1.0, -float(np.mean(sums)) - 3.0])
    for _ in range(MAX_STEPS):
        shares = 1.0 / (1.0 + np.exp(-(found @ values)))
        curvature = (values * (shares * (1 - shares))) @ values.T + 1e-6 * np.eye(2)
        found = found - np.clip(np.linalg.solve(curvature, values @ (shares - hits)), -1.0, 1.0)
    return float(found[0]), float(found[1])


def data_digest(conversations: Sequence[Conversation]) -> str:
    """Return the SHA-256 of what is fitted, as hexadecimal: conversations, features, and the weights set by hand."""
    rows = [
        [one.name, [_turn_row(turn) for turn in one.turns], [[q.text, q.evidence, q.category] for q in one.questions]]
        for one in conversations
    ]
    features = [regime_features(variant, regime) for variant in MODEL_VARIANTS for regime in REGIMES]
    return hashlib.sha256(json.dumps([rows, features, BY_HAND], ensure_ascii=False).encode()).hexdigest()


def _turn_row(turn: Turn) -> list[object]:
    captions = [resource.text for resource in turn.resources]
    return [turn.turn_id, turn.role, turn.speaker, turn.content, str(turn.occurred_at), captions]


def dump_weights(
    fitted: Mapping[ModelVariant, tuple[FittedRegimes, Sequence[str], Mapping[Regime, Floats]]], data_sha256: str
) -> str:
    """Return the weights file; each model comes with the names of its features, and their deviations by regime."""
    models: dict[str, object] = {}
    for variant in MODEL_VARIANTS:
        model, names, deviations = fitted[variant]
        models[variant] = {"intercept": round(model.people.intercept, 4), "weights": model.named(names, deviations)}
    return json.dumps({**models, DATA_DIGEST: data_sha256}, indent=1) + "\n"
