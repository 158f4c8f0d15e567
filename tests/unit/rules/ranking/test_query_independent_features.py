"""What ranking keeps from one question to the next changes no value."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agents.rules.index.columns import IntArray
from agents.rules.ranking.features import RankingFeatures
from agents.rules.ranking.field_scores import compute_fields
from agents.rules.ranking.query_features import QueryFeatures
from agents.rules.ranking.weights import LinearModel, RankingWeights
from tests.builders.query_features import Line, query_features_of

WEIGHTS = Path(__file__).parents[4] / "agents" / "data" / "ranking_weights.json"

LINES = [
    Line("When do we deploy to fly.io?"),
    Line("On Monday at 5pm, I prefer the morning.", "Bo"),
    Line("It costs 20 dollars for 3 hours because the old host is slow.", "Ana", "c2"),
    Line("Bo likes the blue one, order AB-12345.", "Bo", "c2"),
    Line("ok", "Ana", None),
]
EVERY = np.arange(len(LINES))


@pytest.fixture(scope="module")
def model() -> LinearModel:
    return RankingWeights.loads(WEIGHTS.read_text()).models["words"]


def values(features: QueryFeatures, numbers: IntArray, model: LinearModel) -> dict[str, Sequence[float] | None]:
    found = RankingFeatures(features, compute_fields(features), numbers)
    every = {name: found.of(name) for name in model.weights}
    return {name: None if value is None else value.tolist() for name, value in every.items()}


@pytest.mark.parametrize("numbers", [EVERY, EVERY[1:4], EVERY[:0]], ids=["same memories", "fewer", "none"])
def test_earlier_question_changes_no_feature(model: LinearModel, numbers: IntArray) -> None:
    alone = query_features_of("What did Bo say on AB-12345 that costs 20 dollars?", LINES)
    earlier = query_features_of("when do we deploy?", LINES)
    values(earlier, EVERY, model)
    after = replace(alone, derived=earlier.derived)
    assert values(after, numbers, model) == values(alone, numbers, model)


def test_features_of_no_question_are_computed_once() -> None:
    features = query_features_of("when do we deploy?", LINES)
    kept = features.derived.query_independent_features(EVERY)
    RankingFeatures(features, compute_fields(features), EVERY).of("length")
    again = RankingFeatures(query_features := replace(features), compute_fields(query_features), EVERY.copy())
    assert again.of("length") is kept.features["length"]
