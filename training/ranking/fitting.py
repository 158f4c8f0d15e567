"""Fits one head: a linear model that ranks the turns that answer before the others. numpy, and the same each time.

The loss is the listwise softmax cross-entropy of ListNet's top-one probabilities (Cao et al., "Learning to Rank: From
Pairwise Approach to Listwise Approach", 2007), with L2 on weights of signals of deviation 1. It is convex; Newton's
method finds its least in about ten steps. What it leaves open, how likely the best is at all, is set afterwards by a
logistic regression on the one sum (Platt 1999), so that a score is a probability.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.rules.ranking.query_features import MODEL_VARIANTS, ModelVariant
from training.ranking.feature_list import must_help
from training.ranking.samples import BY_HAND, Sample

Floats = NDArray[np.float64]

STRENGTH = 300.0
"""L2: the best of 40, 100, 200, 300 and 400 by cross-validation, none of them more than half a point worse."""

ROWS = 80
"""Memories of each question that are fitted, the most likely ones by the plain sum: what stands below is no rival."""

STEPS = 30
"""More than Newton's method takes."""

ENOUGH = 1e-4
"""An improvement of the loss for each question that is none."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """log-odds = intercept + signals @ weights + by_hand x (what the weights by hand add)."""

    weights: Floats
    by_hand: float
    intercept: float

    def sums(self, sample: Sample) -> Floats:
        """The log-odds of a question's memories, but for the intercept."""
        sums: Floats = sample.signals.astype(np.float64) @ self.weights + self.by_hand * sample.by_hand
        return np.round(sums, 6)

    def named(self, names: Sequence[str], deviations: Floats) -> dict[str, float]:
        """The weights by name, the greatest first, without those that move nothing, and with those by hand."""
        kept = np.abs(self.weights) * deviations >= LEAST
        found = {name: float(self.weights[place]) for place, name in enumerate(names) if kept[place]}
        found |= {name: weight * self.by_hand for name, weight in BY_HAND.items()}
        return {name: round(value, 4) for name, value in sorted(found.items(), key=lambda one: (-abs(one[1]), one[0]))}


LEAST = 0.005
"""What a signal moves the log-odds by, for one deviation, to be worth its time."""


class Table:
    """The rows of many questions in one."""

    def __init__(self, samples: Sequence[Sample], names: Sequence[str]) -> None:
        """Take questions, and the names of their signals; those count of which an answer is among the rows."""
        self.names = names
        kept = [one for one in samples if one.hits[:ROWS].any()]
        self.samples = kept
        self.sizes = np.array([len(one.signals[:ROWS]) for one in kept])
        self.signals = np.concatenate([one.signals[:ROWS] for one in kept])
        self.by_hand = np.concatenate([one.by_hand[:ROWS] for one in kept])
        self.hits = np.concatenate([one.hits[:ROWS] for one in kept])
        self.deviations = self.signals.std(axis=0).astype(np.float64) + 1e-6
        self.scaled = self.signals / self.deviations.astype(np.float32)

    def fit(self, counts: Floats, start: Fitted | None = None) -> Fitted:
        """Fit to the questions as much as `counts` says, one number each; 0 leaves a question out.

        A signal that must help and would not is left out, and the others are fitted anew.
        """
        used = _Used(self, counts)
        weights = np.zeros(len(self.names)) if start is None else start.weights / start.by_hand * self.deviations
        free = np.ones(len(weights), np.bool_) if start is None else weights != 0
        while True:
            weights = _least(used, weights, free)
            against = [place for place, name in enumerate(self.names) if must_help(name) and weights[place] < 0]
            if not against:
                break
            free[against], weights[against] = False, 0.0
        slope, intercept = _calibrated(used.sums(weights), used.hits)
        return Fitted(slope * weights / self.deviations, slope, intercept)


def _least(used: "_Used", weights: Floats, free: NDArray[np.bool_]) -> Floats:
    """The weights of least loss, beginning with these; what is not free stays 0."""
    loss = used.loss(weights)
    for _ in range(STEPS):
        step = used.step(weights, free)
        while (new := used.loss(weights - step)) > loss and np.abs(step).max() > ENOUGH:
            step = step / 2
        if loss - new < ENOUGH * len(used.counts):
            break
        weights, loss = weights - step, new
    return weights


class _Used:
    """The rows of the questions that count."""

    def __init__(self, table: Table, counts: Floats) -> None:
        questions = counts > 0
        rows = np.repeat(questions, table.sizes)
        self.sizes = table.sizes[questions]
        self.counts = counts[questions]
        self.starts = np.cumsum([0, *self.sizes])[:-1]
        self.scaled, self.by_hand, self.hits = table.scaled[rows], table.by_hand[rows], table.hits[rows]
        hits = np.add.reduceat(self.hits.astype(np.float64), self.starts)
        self.wanted = self.hits / np.repeat(hits, self.sizes)
        self.row_counts = np.repeat(self.counts, self.sizes)

    def sums(self, weights: Floats) -> Floats:
        found: Floats = (self.scaled @ weights.astype(np.float32)).astype(np.float64) + self.by_hand
        return found

    def loss(self, weights: Floats) -> float:
        sums = self.sums(weights)
        _, logs = self._shares(sums)
        missed = (self.counts * logs).sum() - (self.row_counts * self.wanted * sums).sum()
        return float(missed + 0.5 * STRENGTH * (weights @ weights))

    def _shares(self, sums: Floats) -> tuple[Floats, Floats]:
        """Each row's share of its question by softmax, and the logarithms of the questions' sums."""
        most = np.maximum.reduceat(sums, self.starts)
        powers = np.exp(sums - np.repeat(most, self.sizes))
        whole = np.add.reduceat(powers, self.starts)
        return powers / np.repeat(whole, self.sizes), np.log(whole) + most

    def step(self, weights: Floats, free: NDArray[np.bool_]) -> Floats:
        scaled = self.scaled[:, free]
        shares, _ = self._shares(self.sums(weights))
        gradient = scaled.T @ ((shares - self.wanted) * self.row_counts).astype(np.float32)
        rooted = scaled * np.sqrt(shares * self.row_counts).astype(np.float32)[:, np.newaxis]
        means = np.add.reduceat(scaled * shares.astype(np.float32)[:, np.newaxis], self.starts, axis=0)
        means *= np.sqrt(self.counts).astype(np.float32)[:, np.newaxis]
        curvature = (rooted.T @ rooted - means.T @ means).astype(np.float64) + STRENGTH * np.eye(int(free.sum()))
        found = np.zeros(len(weights))
        found[free] = np.linalg.solve(curvature, gradient.astype(np.float64) + STRENGTH * weights[free])
        return found


def _calibrated(sums: Floats, hits: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and intercept of a logistic regression of the hits on the sums, by Newton's method."""
    values = np.stack([sums, np.ones(len(sums))])
    found = np.array([1.0, -float(np.mean(sums)) - 3.0])
    for _ in range(STEPS):
        shares = 1.0 / (1.0 + np.exp(-(found @ values)))
        curvature = (values * (shares * (1 - shares))) @ values.T + 1e-6 * np.eye(2)
        found = found - np.clip(np.linalg.solve(curvature, values @ (shares - hits)), -1.0, 1.0)
    return float(found[0]), float(found[1])


def dumps(fitted: Mapping[ModelVariant, tuple[Fitted, Sequence[str], Floats]]) -> str:
    """The heads, each with the names and the deviations of its signals, as JSON that people can read."""
    heads = {
        head: {"intercept": round(fitted[head][0].intercept, 4), "weights": fitted[head][0].named(*fitted[head][1:])}
        for head in MODEL_VARIANTS
    }
    return json.dumps(heads, indent=1) + "\n"
