"""Compute the features of memories for one question, by name. Pure.

A name is a primitive or a product of primitives, such as `?when*date`: `?` marks a trait of the question, everything
else belongs to the memory. `late+1` is the field `late` of the next turn, `late-2` of the second turn before,
`late.best` the maximum of the conversation, `late.answers` the value of the previous turn if that is a question. The
weights file says which names a model uses.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache, reduce

import numpy as np

from agents.rules.index.columns import FloatArray, IntArray, Mask
from agents.rules.index.recency import DAY_MS
from agents.rules.ranking.memory_features import (
    BINARY_MEMORY_FEATURES,
    EPOCH_DAY,
    LABEL_BITS,
    MEMORY_FEATURES,
    QUERY_INDEPENDENT_FEATURES,
    conversation_best,
    question_traits,
    said_in_ranges,
    shift_turns,
    take_or_zero,
)
from agents.rules.ranking.query_features import FeatureArrays, QueryFeatures
from agents.rules.ranking.weights import FeatureName, LinearModel
from agents.rules.text.date_ranges import DateRange, find_date_ranges

MAX_NEIGHBOUR_SCORE, MAX_CONTEXT_SCORE = 3.0, 4.0
"""Upper bounds of features from single neighbours, and from the wider context. A question of one or two words has full
matches, rare in training, and the neighbours of a full match must not outrank it."""

FEATURE_DECIMALS = 9
"""Decimals of a feature: more than are significant, fewer than floating point has."""

BINARY_FEATURES = frozenset({*LABEL_BITS, *BINARY_MEMORY_FEATURES, "said_then"})
"""Primitives that are 0 or 1; they need no rounding."""


VECTOR_FIELDS = frozenset({"late", "dense"})
"""Fields that are known once the question is embedded."""


def uses_vectors(primitive: str) -> bool:
    """Return whether a primitive is a field from vectors, or one of its forms such as `late+1` and `late.best`."""
    field = primitive[:-2] if primitive[-2:-1] in ("+", "-") else primitive.partition(".")[0]
    return field in VECTOR_FIELDS


@dataclass(frozen=True, slots=True)
class PreparedFeatures:
    """Primitives without vectors, of the memories with these numbers, and the words that they were computed from."""

    numbers: IntArray
    lexical: FeatureArrays
    primitives: Mapping[str, FloatArray]

    def of(self, features: QueryFeatures, numbers: IntArray) -> Mapping[str, FloatArray]:
        """Return them if they hold for these memories and these words, which a write replaces; otherwise none."""
        holds = features.lexical is self.lexical and np.array_equal(self.numbers, numbers)
        return self.primitives if holds else {}


def prepare_features(features: QueryFeatures, numbers: IntArray, model: LinearModel) -> PreparedFeatures:
    """Compute the primitives that a model will need and that no vector changes."""
    ranking_features = RankingFeatures(features, features.lexical, numbers)
    return PreparedFeatures(numbers, features.lexical, ranking_features.without_vectors(model))


class RankingFeatures:
    """Features of some memories; primitives are computed on first use, unless they are `known`."""

    def __init__(
        self,
        features: QueryFeatures,
        fields: FeatureArrays,
        numbers: IntArray,
        known: Mapping[str, FloatArray] | None = None,
    ) -> None:
        self._query_features = features
        self._fields = fields
        self._numbers = numbers
        self._labels = features.columns.labels[numbers]
        self._date_ranges = _find_named_date_ranges(features)
        self._traits = question_traits(features, self._date_ranges)
        self._known = dict(known or {})
        self._query_independent = features.derived.query_independent_features(numbers)

    def of(self, name: str) -> FloatArray | None:
        """Return a feature, shape of the numbers; None if the question makes it 0 for all memories.

        Raises KeyError for an unknown name.
        """
        traits, primitives = _parse(name)
        factor = self._factor(traits)
        if not factor:
            return None
        found = self._product(primitives)
        return found if factor == 1.0 else factor * found

    def log_odds(self, model: LinearModel) -> FloatArray:
        """Return the intercept plus the weighted features, shape of the numbers."""
        log_odds = np.full(len(self._numbers), model.intercept)
        for primitives, weight in self._weighted(model):
            log_odds += weight * self._product(primitives)
        return log_odds

    def without_vectors(self, model: LinearModel) -> Mapping[str, FloatArray]:
        """Return the primitives of this question that a model needs, but for those from vectors."""
        names = {name for primitives, _ in self._weighted(model) for name in primitives}
        return {name: self._primitive(name) for name in names - QUERY_INDEPENDENT_FEATURES if not uses_vectors(name)}

    def _weighted(self, model: LinearModel) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield each product that counts for the question, with its weight."""
        factors: dict[tuple[str, ...], float] = {(): 1.0}
        for primitives, weights in model.products:
            total = 0.0
            for traits, weight in weights:
                if traits not in factors:
                    factors[traits] = self._factor(traits)
                total += weight * factors[traits]
            if total:
                yield primitives, total

    def _factor(self, traits: Sequence[str]) -> float:
        return math.prod(self._traits.get(trait, 0.0) for trait in traits)

    def _product(self, primitives: Sequence[str]) -> FloatArray:
        return reduce(np.multiply, map(self._primitive, primitives))

    def _primitive(self, name: str) -> FloatArray:
        cache = self._query_independent.features if name in QUERY_INDEPENDENT_FEATURES else self._known
        known = cache.get(name)
        if known is None:
            # The last digit of a logarithm may depend on memory alignment; equal memories must get equal values.
            made = self._compute(name)
            known = cache[name] = made if name in BINARY_FEATURES else np.round(made, FEATURE_DECIMALS)
        return known

    def _compute(self, name: str) -> FloatArray:
        if name in LABEL_BITS:
            has_label: Mask = (self._labels & LABEL_BITS[name]) != 0
            return has_label.astype(np.float64)
        if name in MEMORY_FEATURES:
            return np.asarray(MEMORY_FEATURES[name](self._query_features, self._numbers), np.float64)
        if name == "said_then":
            return said_in_ranges(self._query_features, self._numbers, self._date_ranges).astype(np.float64)
        if name[-2] in "+-":
            neighbours = take_or_zero(self._fields[name[:-2]], self._turns_at(int(name[-2:])))
            return np.minimum(neighbours, MAX_NEIGHBOUR_SCORE)
        field, _, transform = name.partition(".")
        if transform:
            return self._transform(field, transform)
        found = self._fields[field][self._numbers]
        return np.minimum(found, MAX_CONTEXT_SCORE) if field == "around" else found

    def _turns_at(self, step: int) -> IntArray:
        """Return the turn `step` places after each memory."""
        known = self._query_independent.shifted.get(step)
        if known is None:
            known = self._query_independent.shifted[step] = shift_turns(self._numbers, self._query_features.order, step)
        return known

    def _transform(self, field: str, transform: str) -> FloatArray:
        """Return the maximum of the conversation, or the value of the previous turn if that is a question."""
        if transform == "answers":
            return self._primitive(f"{field}-1") * self._primitive("asked_before")
        best = conversation_best(self._fields[field], self._query_features.columns.conversations, self._numbers)
        return np.minimum(best, MAX_CONTEXT_SCORE)


def _find_named_date_ranges(features: QueryFeatures) -> list[DateRange]:
    first, last = (date.fromordinal(EPOCH_DAY + moment // DAY_MS).year for moment in features.derived.time_range_ms)
    return find_date_ranges(features.question.asked, range(first, last + 1))


_parse = lru_cache(maxsize=1024)(FeatureName.parse)
"""Cached: every question uses the same names."""
