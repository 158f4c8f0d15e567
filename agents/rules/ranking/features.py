"""Compute the features of memories for one question, by name. Pure.

A name is a primitive or a product of primitives, such as `?when*date`: `?` marks a trait of the question, everything
else belongs to the memory. `late+1` is the field `late` of the next turn, `late-2` of the second turn before,
`late.best` the maximum of the conversation, `late.rank` the reciprocal rank, `late.partner` that of the turn which a
reply answers, and of the next turn for all others, `late.answers` the value of the previous turn if that is a question.
The weights file says which names a model uses.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property, lru_cache, reduce
from typing import Any, NamedTuple, Self

import numpy as np

from agents.rules.index.columns import DAY_MS, FloatArray, IntArray, Mask
from agents.rules.ranking.memory_features import (
    BINARY_MEMORY_FEATURES,
    EPOCH_DAY,
    FEATURE_DECIMALS,
    FEATURE_SCALES,
    LABEL_BITS,
    MEMORY_FEATURES,
    MODEL_VARIANTS,
    QUERY_INDEPENDENT_FEATURES,
    QUESTION_TRAITS,
    FeatureArrays,
    ModelVariant,
    QueryFeatures,
    conversation_best,
    question_traits,
    said_in_ranges,
    shift_turns,
    take_or_zero,
)
from agents.rules.text.dates import find_date_ranges

# Ranking weights, from the JSON file that `python -m training.ranking` writes. Pure.
#
# One linear model per variant: `tokens` (pooled and token vectors), `vectors` (pooled vectors only), `words` (no
# vectors), each with an `intercept` and `weights` by feature name (`agents.rules.ranking.features`). Guaranteed:
# weights are finite, and each feature can be computed by its variant.

DATA_DIGEST = "data_sha256"
"""The key of the training data's digest, which a file may have in addition to the models."""

NEIGHBOUR_OFFSETS = ("-2", "-1", "+1", "+2")
"""Suffixes of a field taken from a neighbouring turn."""


class FeatureName(NamedTuple):
    """The parts of a feature's name: traits of the question, without `?`, and primitives of a memory."""

    traits: tuple[str, ...]
    primitives: tuple[str, ...]

    @classmethod
    def parse(cls, name: str) -> Self:
        parts = name.split("*")
        traits = tuple(part[1:] for part in parts if part.startswith("?"))
        return cls(traits, tuple(part for part in parts if not part.startswith("?")))


class WeightedProduct(NamedTuple):
    """A product of primitives, and the weights of all features that have it, each with its traits of the question."""

    primitives: tuple[str, ...]
    weights: Sequence[tuple[tuple[str, ...], float]]


@dataclass(frozen=True)
class LinearModel:
    """A linear model: log-odds = intercept + sum of weight x feature."""

    intercept: float
    weights: Mapping[str, float]

    @cached_property
    def products(self) -> Sequence[WeightedProduct]:
        """The weights by product of primitives: for one question each product has one weight."""
        by_product: dict[tuple[str, ...], list[tuple[tuple[str, ...], float]]] = {}
        for name, weight in self.weights.items():
            traits, primitives = FeatureName.parse(name)
            by_product.setdefault(primitives, []).append((traits, weight))
        return [WeightedProduct(primitives, weights) for primitives, weights in by_product.items()]


@dataclass(frozen=True, slots=True)
class RankingWeights:
    models: Mapping[ModelVariant, LinearModel]

    @classmethod
    @lru_cache(maxsize=2)
    def loads(cls, text: str) -> Self:
        """Parse the file's text; a repeated one costs nothing. Raises ValueError if it is invalid."""
        stored = json.loads(text)
        if not isinstance(stored, dict) or set(stored) - {DATA_DIGEST} != set(MODEL_VARIANTS):
            raise ValueError(f"ranking weights must be a JSON object with the models {', '.join(MODEL_VARIANTS)}")
        models: dict[ModelVariant, LinearModel] = {}
        for name in MODEL_VARIANTS:
            model = stored[name]
            if not isinstance(model, dict) or not isinstance(model.get("weights"), dict):
                raise ValueError(f"the model {name!r} of the ranking weights needs an intercept and weights")  # noqa: TRY004
            weights = {feature: _number(feature, value) for feature, value in model["weights"].items()}
            for feature in weights:
                if not is_feature_name(feature, maxsim=name == "tokens", dense=name != "words"):
                    raise ValueError(f"the model {name!r} of the ranking weights can't compute the feature {feature!r}")
            models[name] = LinearModel(_number("intercept", model.get("intercept")), weights)
        return cls(models)


def is_feature_name(name: str, *, maxsim: bool, dense: bool) -> bool:
    """Return whether a model with these fields can compute the feature."""
    vector_fields = [*(["late"] if maxsim else []), *(["dense"] if dense else [])]
    fields = {"words", "around", "conversation", "cover", *vector_fields}
    parts = name.split("*")
    if not dense and any(part.partition(".")[0] == "whole" for part in parts):
        return False
    return any(part[:1] != "?" for part in parts) and all(
        part[1:] in QUESTION_TRAITS if part.startswith("?") else _is_primitive(part, fields) for part in parts
    )


MAX_NEIGHBOUR_SCORE, MAX_CONTEXT_SCORE = 3.0, 4.0
"""Upper bounds of features from single neighbours, and from the wider context. A question of one or two words has full
matches, rare in training, and the neighbours of a full match must not outrank it."""

ROUNDED_FEATURES = frozenset({*MEMORY_FEATURES, "whole"}) - BINARY_MEMORY_FEATURES
"""Primitives that are rounded here. All others are 0 or 1, or values of fields, which are rounded already."""

HALF_RANK = 10
"""The rank, from 0, at which a reciprocal rank is a half."""

VECTOR_FIELDS = frozenset({"late", "dense", "whole"})
"""Fields that are known once the question is embedded."""


@cache
def uses_vectors(primitive: str) -> bool:
    """Return whether a primitive is a field from vectors, or one of its forms such as `late+1` and `late.best`."""
    field = primitive[:-2] if primitive[-2:-1] in ("+", "-") else primitive.partition(".")[0]
    return field in VECTOR_FIELDS


Product = tuple[tuple[str, ...], float]
"""Primitives, and the weight of their product for one question."""


@dataclass(frozen=True, slots=True)
class PreparedFeatures:
    """Known features of the memories with these numbers before the question is embedded, by these words and this model.

    `log_odds` is the sum without the products that need vectors; those are `left`.
    """

    numbers: IntArray
    lexical: FeatureArrays
    model: LinearModel
    primitives: Mapping[str, FloatArray]
    log_odds: FloatArray
    left: Sequence[Product]

    def holds(self, features: QueryFeatures, numbers: IntArray) -> bool:
        """True for the same memories and words; a write replaces the words."""
        return features.lexical is self.lexical and np.array_equal(self.numbers, numbers)


def prepare_features(features: QueryFeatures, numbers: IntArray, model: LinearModel) -> PreparedFeatures:
    """Compute the part of a model's log-odds that no vector changes, and its primitives."""
    return RankingFeatures(features, features.lexical, numbers).prepared(model)


class RankingFeatures:
    """Features of some memories; primitives are computed on first use, unless they are `prepared`."""

    def __init__(
        self,
        features: QueryFeatures,
        fields: FeatureArrays,
        numbers: IntArray,
        prepared: PreparedFeatures | None = None,
    ) -> None:
        self._query_features = features
        self._fields = fields
        self._numbers = numbers
        self._labels = features.columns.labels[numbers]
        days = (EPOCH_DAY + moment // DAY_MS for moment in features.derived.time_range_ms)
        first_year, last_year = (date.fromordinal(day).year for day in days)
        self._date_ranges = find_date_ranges(features.question.asked, range(first_year, last_year + 1))
        self._traits = question_traits(features, self._date_ranges)
        self._prepared = prepared if prepared is not None and prepared.holds(features, numbers) else None
        self._known = dict(self._prepared.primitives) if self._prepared else {}
        self._query_independent = features.derived.query_independent_features(numbers)

    def of(self, name: str) -> FloatArray | None:
        """Return a feature, shape of the numbers; None if the question makes it 0 for all memories.

        Raises KeyError for an unknown name.
        """
        traits, primitives = _parse(name)
        factor = self._factor(traits)
        if not factor:
            return None
        product = self._product(primitives)
        return product if factor == 1.0 else factor * product

    def log_odds(self, model: LinearModel) -> FloatArray:
        """Return the intercept plus the weighted features, shape of the numbers."""
        ahead = self._prepared
        if ahead is not None and ahead.model is model:
            return self._added(ahead.log_odds.copy(), ahead.left)
        return self._added(np.full(len(self._numbers), model.intercept), self._weighted(model))

    def prepared(self, model: LinearModel) -> PreparedFeatures:
        """Return the features known without vectors."""
        products = list(self._weighted(model))
        left = [product for product in products if any(map(uses_vectors, product[0]))]
        lexical = [product for product in products if not any(map(uses_vectors, product[0]))]
        log_odds = self._added(np.full(len(self._numbers), model.intercept), lexical)
        return PreparedFeatures(self._numbers, self._fields, model, self._known, log_odds, left)

    def _added(self, log_odds: FloatArray, products: Iterable[Product]) -> FloatArray:
        for primitives, weight in products:
            log_odds += weight * self._product(primitives)
        return log_odds

    def _weighted(self, model: LinearModel) -> Iterator[Product]:
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
        values = cache.get(name)
        if values is None:
            made = self._compute(name)
            values = cache[name] = made.round(FEATURE_DECIMALS) if name in ROUNDED_FEATURES else made
        return values

    def _compute(self, name: str) -> FloatArray:  # noqa: PLR0911 - one case a kind of primitive
        if name in LABEL_BITS:
            has_label: Mask = (self._labels & LABEL_BITS[name]) != 0
            return has_label.astype(np.float64)
        if name in MEMORY_FEATURES:
            return np.asarray(MEMORY_FEATURES[name].values(self._query_features, self._numbers), np.float64)
        if name == "whole":
            # Amount by which the whole text is nearer than its best passage, on the scale of `dense`; 0 if it is uncut.
            whole, dense = self._query_features.whole, self._query_features.dense
            if whole is None or dense is None:
                return np.zeros(len(self._numbers))
            return (whole - dense)[self._numbers] * FEATURE_SCALES["dense"].steps
        if name == "said_then":
            return said_in_ranges(self._query_features, self._numbers, self._date_ranges).astype(np.float64)
        if name[-2] in "+-":
            neighbours = take_or_zero(self._fields[name[:-2]], self._turns_at(int(name[-2:])))
            return np.minimum(neighbours, MAX_NEIGHBOUR_SCORE)
        field, _, transform = name.partition(".")
        if transform:
            return self._transform(field, transform)
        scores = self._fields[field][self._numbers]
        return np.minimum(scores, MAX_CONTEXT_SCORE) if field == "around" else scores

    def _turns_at(self, step: int) -> IntArray:
        turns = self._query_independent.shifted.get(step)
        if turns is None:
            turns = self._query_independent.shifted[step] = shift_turns(self._numbers, self._query_features.order, step)
        return turns

    def _transform(self, field: str, transform: str) -> FloatArray:
        if transform == "rank":
            values = self._query_features.whole if field == "whole" else self._fields[field]
            assert values is not None, "whole texts have cosines where passages have"
            return reciprocal_ranks(values[self._numbers])
        if transform == "partner":
            ranks = np.zeros(len(self._query_features.columns.live))
            ranks[self._numbers] = self._primitive(f"{field}.rank")
            is_reply = (self._labels & LABEL_BITS["assistant"]) != 0
            return take_or_zero(ranks, np.where(is_reply, self._turns_at(-1), self._turns_at(1)))
        if transform == "answers":
            return self._primitive(f"{field}-1") * self._primitive("asked_before")
        best = conversation_best(self._fields[field], self._query_features.columns.conversations, self._numbers)
        return np.minimum(best, MAX_CONTEXT_SCORE)


def reciprocal_ranks(values: FloatArray) -> FloatArray:
    """Return 1 for the greatest value, 0.5 for the eleventh, equal values alike; in the shape of `values`."""
    descending = -values.round(FEATURE_DECIMALS)
    ranks = np.searchsorted(np.sort(descending), descending, "left")
    reciprocal: FloatArray = HALF_RANK / (HALF_RANK + ranks)
    return reciprocal


_parse = lru_cache(maxsize=1024)(FeatureName.parse)
"""Cached: every question uses the same names."""


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name!r} in the ranking weights must be a finite number")
    return float(value)


def _is_primitive(name: str, fields: set[str]) -> bool:
    if name in LABEL_BITS or name in MEMORY_FEATURES or name in ("said_then", "whole", "whole.rank", "whole.partner"):
        return True
    field, _, form = name.partition(".")
    return (
        name in fields
        or (field in fields and form in ("best", "answers", "rank", "partner"))
        or (name[:-2] in fields and name[-2:] in NEIGHBOUR_OFFSETS)
    )
