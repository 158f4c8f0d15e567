"""Ranking weights, from the JSON file that `python -m training.ranking` writes. Pure.

One linear model per variant: `tokens` (pooled and token vectors), `vectors` (pooled vectors only), `words` (no
vectors), each with an `intercept` and `weights` by feature name (`agents.rules.ranking.features`). Guaranteed: weights
are finite, and each feature can be computed by its variant.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

from agents.rules.ranking.memory_features import LABEL_BITS, MEMORY_FEATURES, QUESTION_TRAITS
from agents.rules.ranking.query_features import MODEL_VARIANTS, ModelVariant

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
        """Split a name."""
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
    """The models by variant."""

    models: Mapping[ModelVariant, LinearModel]

    @classmethod
    def loads(cls, text: str) -> Self:
        """Parse the file's text. Raises ValueError if it is invalid."""
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


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name!r} in the ranking weights must be a finite number")
    return float(value)


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


def _is_primitive(name: str, fields: set[str]) -> bool:
    if name in LABEL_BITS or name in MEMORY_FEATURES or name in ("said_then", "whole", "whole.rank", "whole.partner"):
        return True
    field, _, form = name.partition(".")
    return (
        name in fields
        or (field in fields and form in ("best", "answers", "rank", "partner"))
        or (name[:-2] in fields and name[-2:] in NEIGHBOUR_OFFSETS)
    )
