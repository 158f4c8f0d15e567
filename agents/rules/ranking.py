"""The order of the hits: seven signals of every memory, each in 0..1, and their weighted mean. Pure.

All signals come from memories of one boundary, so nothing that another user stores can move a score.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from agents.rules.bm25 import Postings
from agents.rules.columns import Floats, Mask, Numbers
from schemas.retrieval import Scores
from schemas.vectors import Scored

HALF_LIFE_DAYS = {"fast": 7.0, "medium": 30.0, "slow": 180.0, "none": float("inf")}
"""When a memory's recency is a half, by the decay of its mode."""

DAY_MS = 86_400_000

DIGITS = 6
"""Decimals of a score: differences below are noise of floating point, and must not decide an order."""


TINY = 1e-9
"""Keeps a division by a greatest score sane where no memory has any."""


@dataclass(frozen=True, slots=True)
class Signals:
    """What is known of each memory for one question; arrays of shape (memories,), by number."""

    dense: Floats
    lexical: Floats
    neighbours: Floats
    recency: Floats
    importance: Floats
    entity: Floats
    speaker: Floats

    def of(self, number: int) -> Scores:
        """The signals of one memory, for people."""
        return Scores(**{field.name: round(float(getattr(self, field.name)[number]), DIGITS) for field in fields(self)})


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each signal counts. Not negative, and their sum is not zero."""

    dense: float
    lexical: float
    neighbours: float
    recency: float
    importance: float
    entity: float
    speaker: float

    @classmethod
    def loads(cls, text: str) -> Self:
        """Weights from a JSON object with a number for every signal; ValueError for anything else."""
        found = json.loads(text)
        names = {field.name for field in fields(cls)}
        if not isinstance(found, dict) or set(found) != names:
            raise ValueError(f"ranking weights are a JSON object of numbers with the names {sorted(names)}")
        weights = cls(**{name: float(value) for name, value in found.items()})
        values = [getattr(weights, name) for name in names]
        if not all(0 <= value < math.inf for value in values) or weights.total <= 0:
            raise ValueError("ranking weights are finite, none is negative, and not all are zero")
        return weights

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(sum(getattr(self, field.name) for field in fields(self)))


def blend(signals: Signals, weights: Weights, ready: Mask) -> Floats:
    """The score of every memory: the weighted mean of its signals.

    One that is not `ready` has no vector yet. It counts as near as its words tell, the best match by words as the
    nearest of all: a turn that was written a moment ago would otherwise stand behind all that are merely alike.
    """
    told = signals.lexical / max(float(signals.lexical.max(initial=0.0)), TINY)
    supposed = told * signals.dense.max(initial=0.0)
    signals = replace(signals, dense=np.where(ready, signals.dense, supposed))
    mean = sum(getattr(signals, field.name) * getattr(weights, field.name) for field in fields(weights))
    return np.round(np.asarray(mean) / weights.total, DIGITS)


def placed(found: Sequence[Scored], number_of: Mapping[str, int], ready: Mask) -> Floats:
    """The cosines by number, within 0..1; 0 for what was not found, and for what is not `ready`."""
    nowhere = len(ready)
    cosines = np.zeros(nowhere + 1)
    places = [number_of.get(scored.memory_id, nowhere) for scored in found]
    cosines[places] = [scored.cosine for scored in found]
    return np.clip(cosines[:nowhere], 0.0, 1.0) * ready


def recency(ages_ms: Floats, half_lives_ms: Floats) -> Floats:
    """1 for now, a half after the half-life, falling as 1 / (1 + age / half-life), which still tells old from older."""
    recent: Floats = 1.0 / (1.0 + np.maximum(ages_ms, 0.0) / half_lives_ms)
    return recent


def beside(signal: Floats, before: Numbers, after: Numbers) -> Floats:
    """The mean of a signal over the turn before and the turn after; a turn that is not there counts 0."""
    padded = np.append(signal, 0.0)
    mean: Floats = (padded[before] + padded[after]) / 2
    return mean


def share(postings: Sequence[Postings], memories: int) -> Floats:
    """For each memory the share of these terms that it has; 0 where there are no terms."""
    found = np.zeros(memories)
    for term in postings:
        found[term.numbers] += 1.0
    return found / max(len(postings), 1)


def best(scores: Floats, admitted: Mask, top_k: int, id_of: Mapping[int, str]) -> list[int]:
    """The numbers of the best admitted memories, best first, equal ones by id."""
    numbers = np.flatnonzero(admitted)
    if len(numbers) > top_k:
        worst = np.partition(scores[numbers], -top_k)[-top_k]
        numbers = numbers[scores[numbers] >= worst]
    return sorted(numbers.tolist(), key=lambda number: (-scores[number], id_of[number]))[:top_k]
