"""Identifiers, and their effect on ranking."""

import numpy as np
import pytest

from agents.rules.ranking.features import RankingFeatures, RankingWeights
from agents.rules.ranking.memory_features import compute_fields, is_identifier
from agents.rules.ranking.ranking import rank_memories
from tests.builders.query_features import Line, query_features_of
from tests.harnesses.retrieval import WEIGHTS


@pytest.mark.parametrize(
    "term", ["k17", "zx-81-k17", "s6f4cf7685882", "4711042", "fly.io", "retry_failed", "v2.0.1", "a/b", "ana@b.org"]
)
def test_identifiers(term: str) -> None:
    assert is_identifier(term)


@pytest.mark.parametrize("term", ["5pm", "2nd", "10km", "90s", "2026", "42", "violin", "well-known", "l'eau", ""])
def test_words_years_and_measures_are_no_identifiers(term: str) -> None:
    assert not is_identifier(term)


TALK = [Line("The order numbers came last week."), Line("Soup."), Line("ZX-81-K17 is on its way."), Line("Fine.")]


def test_feature_is_the_share_of_matched_identifiers() -> None:
    clues = query_features_of("Was ZX-81-K17 in the order, or QQ-7-P?", TALK)
    features = RankingFeatures(clues, compute_fields(clues), np.arange(4))
    found = features.of("identifier")
    assert found is not None
    assert found.tolist() == pytest.approx([0, 0, 2 / 3, 0]), "zx-81-k17 and k17, but not qq-7-p"


def test_identifier_match_outranks_semantic_similarity() -> None:
    near = np.array([0.75, 0.4, 0.5, 0.4])
    clues = query_features_of(
        "Do you remember the order number ZX-81-K17 from last week?", TALK, dense=near, maxsim=near
    )
    ranking = rank_memories(clues, np.ones(4, np.bool_), RankingWeights.loads(WEIGHTS.read_text()).models["tokens"])
    assert ranking.numbers[int(np.argmax(ranking.log_odds))] == 2
