"""The file of weights as text, the same for the same weights."""

import json
from collections.abc import Mapping, Sequence

from agents.rules.ranking.heads import MODEL_VARIANTS, ModelVariant
from training.ranking.fitting import Fitted, Floats


def dumps(fitted: Mapping[ModelVariant, tuple[Fitted, Sequence[str], Floats]]) -> str:
    """The heads, each with the names and the deviations of its signals, as JSON that people can read."""
    heads = {
        head: {"intercept": round(fitted[head][0].intercept, 4), "weights": fitted[head][0].named(*fitted[head][1:])}
        for head in MODEL_VARIANTS
    }
    return json.dumps(heads, indent=1) + "\n"
