"""What revisions of the pipelines find of the evidence of questions, and whether they differ. Pure.

Enters: an outcome of each question by one or two revisions. Leaves: means by mode, and of all questions the difference
with its bootstrap interval and a verdict. The same outcomes give the same report.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

MEASURES = ("recall_at_5", "recall_at_10", "context_coverage")
DECIDING = ("recall_at_10", "context_coverage")
"""The measures that the verdict is about; recall@5 is part of recall@10."""

MIN_QUESTIONS = 10
"""Minimum questions of a verdict: of fewer, resampling says nothing about others."""

RESAMPLES = 10_000
SEED = 50
"""Any constant: the interval is the same each time."""

Verdict = Literal["better", "worse", "no_difference", "too_few_questions"]

SENTENCES: Mapping[Verdict, str] = {
    "better": "The other revision finds more.",
    "worse": "The other revision finds less: keep the current one.",
    "no_difference": "No difference was shown.",
    "too_few_questions": f"Fewer than {MIN_QUESTIONS} questions: ask of more users, or later.",
}


class Shares(NamedTuple):
    """Shares of a question's evidence, 0..1: among the first 5 and 10 hits, and in a context within its budget."""

    recall_at_5: float
    recall_at_10: float
    context_coverage: float


class Outcome(BaseModel, frozen=True):
    """A question of a mode by the current revision, and by another one. `memory_id` names its turn."""

    memory_id: str
    mode: str
    current: Shares
    other: Shares | None = None


def shares_found(evidence: Collection[str], hits: Sequence[str], context: Collection[str]) -> Shares:
    """Return the shares of the evidence among hits, best first, and in a context; all are memory ids."""

    def share(found: Collection[str]) -> float:
        return len(set(evidence).intersection(found)) / len(evidence)

    return Shares(share(hits[:5]), share(hits[:10]), share(context))


def report(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Return `modes` and `all` with their means, and where another revision was asked `difference` and `verdict`."""
    modes = sorted({outcome.mode for outcome in outcomes})
    by_mode = {mode: _means([outcome for outcome in outcomes if outcome.mode == mode]) for mode in modes}
    shown: dict[str, Any] = {"questions": len(outcomes), "modes": by_mode, "all": _means(outcomes)}
    pairs = [(outcome.current, outcome.other) for outcome in outcomes if outcome.other is not None]
    if len(pairs) < len(outcomes) or not pairs:
        return shown
    differences = np.array([other for _, other in pairs]) - np.array([current for current, _ in pairs])
    difference = _intervals(differences)
    verdict = _verdict(difference) if len(pairs) >= MIN_QUESTIONS else "too_few_questions"
    return {**shown, "difference": difference, "verdict": verdict, "sentence": SENTENCES[verdict]}


def _means(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    sides = {"current": [outcome.current for outcome in outcomes]}
    others = [outcome.other for outcome in outcomes if outcome.other is not None]
    sides |= {"other": others} if others else {}
    means = {
        side: dict(zip(MEASURES, np.mean(shares, axis=0).round(4).tolist(), strict=True))
        for side, shares in sides.items()
        if shares
    }
    return {"questions": len(outcomes), **means}


def _intervals(differences: NDArray[np.float64]) -> dict[str, dict[str, float]]:
    """Return the mean and its 95 % interval for each column: percentiles of means of questions drawn with return."""
    random, number = np.random.default_rng(SEED), len(differences)
    bounds = []
    for column in differences.T:
        # Questions with the same difference are drawn together: there are few different ones.
        values, counts = np.unique(column, return_counts=True)
        drawn = random.multinomial(number, counts / number, size=RESAMPLES) @ values / number
        bounds.append(np.percentile(drawn, (2.5, 97.5)))
    return {
        name: {"mean": round(float(mean), 4), "low": round(float(low), 4), "high": round(float(high), 4)}
        for name, mean, (low, high) in zip(MEASURES, differences.mean(axis=0), bounds, strict=True)
    }


def _verdict(difference: Mapping[str, Mapping[str, float]]) -> Verdict:
    """Return `worse` if a deciding measure fell, else `better` if one rose."""
    if any(difference[name]["high"] < 0 for name in DECIDING):
        return "worse"
    return "better" if any(difference[name]["low"] > 0 for name in DECIDING) else "no_difference"
