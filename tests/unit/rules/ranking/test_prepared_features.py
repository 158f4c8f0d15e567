"""What is computed while a question is embedded changes no rank, and counts for the same memories and words alone."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agents.rules.ranking.features import LinearModel, PreparedFeatures, RankingWeights, prepare_features, uses_vectors
from agents.rules.ranking.memory_features import QueryFeatures
from agents.rules.ranking.ranking import rank_memories
from tests.builders.query_features import Line, query_features_of

WEIGHTS = Path(__file__).parents[4] / "agents" / "data" / "ranking_weights.json"

LINES = [
    Line("When do we deploy to fly.io?"),
    Line("On Monday at 5pm, I prefer the morning.", "Bo"),
    Line("Bo likes the blue one, order AB-12345.", "Bo", "c2"),
]
EVERY = np.arange(len(LINES))
LIVE = np.ones(len(LINES), np.bool_)


@pytest.fixture(scope="module")
def model() -> LinearModel:
    return RankingWeights.loads(WEIGHTS.read_text()).models["tokens"]


@pytest.fixture
def asked() -> QueryFeatures:
    return query_features_of("What did Bo say about AB-12345 on Monday?", LINES)


def embedded(features: QueryFeatures) -> QueryFeatures:
    return replace(features, embedded=LIVE, dense=np.array([0.3, 0.6, 0.2]), maxsim=np.array([0.5, 0.4, 0.7]))


def test_ranks_are_the_same(asked: QueryFeatures, model: LinearModel) -> None:
    prepared = prepare_features(asked, EVERY, model)
    assert "words" in prepared.primitives
    alone, ahead = (rank_memories(embedded(asked), LIVE, model, prepared=features) for features in (None, prepared))
    assert ahead.log_odds.tolist() == alone.log_odds.tolist()


def test_primitives_are_taken_over(asked: QueryFeatures, model: LinearModel) -> None:
    prepared = prepare_features(asked, EVERY, model)
    doubled = replace(prepared, primitives={name: 2.0 * value for name, value in prepared.primitives.items()})
    features = rank_memories(embedded(asked), LIVE, model, prepared=doubled).features
    found, known = features.of("words"), prepared.primitives["words"]
    assert found is not None
    assert found.tolist() == (2.0 * known).tolist() != known.tolist()


def test_nothing_from_vectors_is_prepared(asked: QueryFeatures, model: LinearModel) -> None:
    assert not any(map(uses_vectors, prepare_features(asked, EVERY, model).primitives))
    assert [uses_vectors(name) for name in ("late", "late+1", "dense-2", "late.best", "dense.answers")] == [True] * 5
    assert [uses_vectors(name) for name in ("lateness", "words-1", "around", "conversation.best")] == [False] * 4


def test_prepared_features_spare_the_ranking_their_computation(asked: QueryFeatures, model: LinearModel) -> None:
    ahead = rank_memories(embedded(asked), LIVE, model, prepared=falsified(prepare_features(asked, EVERY, model)))
    assert ahead.log_odds.tolist() != rank_memories(embedded(asked), LIVE, model).log_odds.tolist()


def test_other_memories_and_words_are_computed_anew(asked: QueryFeatures, model: LinearModel) -> None:
    false = falsified(prepare_features(asked, EVERY, model))
    written = replace(asked, lexical=dict(asked.lexical))
    for features, admitted in ((written, LIVE), (asked, LIVE & (EVERY > 0))):
        found = rank_memories(embedded(features), admitted, model, prepared=false)
        assert found.log_odds.tolist() == rank_memories(embedded(features), admitted, model).log_odds.tolist()


def falsified(prepared: PreparedFeatures) -> PreparedFeatures:
    """Return other log-odds, which no ranking would compute."""
    return replace(prepared, log_odds=prepared.log_odds + 1.0)
