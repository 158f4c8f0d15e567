"""The weights of the ranking, from a data file that `python -m training.ranking` writes. Pure.

Enters: JSON with a head for each of three states of things: `tokens` (pooled and token vectors), `vectors` (pooled ones
alone) and `words` (no vectors). A head has an `intercept` and `weights` by name of signal
(`agents.rules.ranking.features`). Guaranteed: every weight is finite and every name is one that can be computed.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from agents.rules.ranking.feature_names import is_feature_name
from agents.rules.ranking.heads import MODEL_VARIANTS, ModelVariant


@dataclass(frozen=True, slots=True)
class LinearModel:
    """One linear model: log-odds = intercept + the sum of weight x signal."""

    intercept: float
    weights: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """The heads by name."""

    models: Mapping[ModelVariant, LinearModel]

    @classmethod
    def loads(cls, text: str) -> Self:
        """The weights of a file; ValueError for anything else."""
        found = json.loads(text)
        if not isinstance(found, dict) or set(found) != set(MODEL_VARIANTS):
            raise ValueError(f"ranking weights are a JSON object with the heads {', '.join(MODEL_VARIANTS)}")
        return cls({name: _head(name, found[name]) for name in MODEL_VARIANTS})


def _head(name: ModelVariant, found: Any) -> LinearModel:
    if not isinstance(found, dict) or not isinstance(found.get("weights"), dict):
        raise ValueError(f"the head {name!r} of ranking weights has an intercept and weights")  # noqa: TRY004
    weights = {signal: _number(signal, value) for signal, value in found["weights"].items()}
    for signal in weights:
        if not is_feature_name(signal, late=name == "tokens", dense=name != "words"):
            raise ValueError(f"the head {name!r} of ranking weights can't know a signal {signal!r}")
    return LinearModel(_number("intercept", found.get("intercept")), weights)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{name!r} in ranking weights is a finite number")
    return float(value)
