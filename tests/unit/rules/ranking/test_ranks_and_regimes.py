"""Reciprocal ranks, and the traits that mix the weights of short turns with those of long replies."""

import numpy as np
import pytest
from modestream_client.vocabulary import Role

from agents.rules.ranking.features import RankingFeatures, reciprocal_ranks
from agents.rules.ranking.field_scores import compute_fields
from agents.rules.ranking.memory_features import question_traits
from tests.builders.query_features import Line, query_features_of

SHORT = "We met at the harbour."
LONG = "The plan has many parts, and each of them needs some time. " * 10


def traits(*texts: str) -> dict[str, float]:
    return dict(question_traits(query_features_of("harbour", [Line(text) for text in texts]), ()))


def test_the_greatest_value_has_rank_one() -> None:
    assert reciprocal_ranks(np.array([0.2, 0.9, 0.5]))[1] == 1.0


def test_equal_values_have_equal_ranks() -> None:
    ranks = reciprocal_ranks(np.array([0.4, 0.7, 0.4]))
    assert ranks[0] == ranks[2]


def test_the_eleventh_has_half() -> None:
    assert reciprocal_ranks(-np.arange(20.0))[10] == 0.5


def test_short_turns_are_ranked_as_between_people() -> None:
    assert traits(SHORT, SHORT, SHORT)["people"] == 1.0


def test_long_replies_to_each_message_are_ranked_as_those_of_an_assistant() -> None:
    assert traits(SHORT, LONG, SHORT, LONG)["replies"] == 1.0


def test_between_the_shapes_the_weights_mix() -> None:
    found = traits(*[SHORT] * 9, LONG)
    assert found["people"] + found["replies"] == pytest.approx(1.0)


def test_a_few_long_turns_change_little() -> None:
    assert 0.0 < traits(*[SHORT] * 9, LONG)["replies"] < 0.5


def test_whole_texts_are_ranked_by_their_cosines() -> None:
    features = query_features_of("harbour", [Line(SHORT), Line(LONG)], dense=np.array([0.3, 0.6]))
    ranked = RankingFeatures(features, compute_fields(features), np.arange(2)).of("whole.rank")
    assert ranked is not None
    assert ranked[1] == 1.0


def partners(*roles: Role) -> list[float]:
    """Return the ranks of the partners of turns of which the first is nearest, the second next, and so on."""
    lines = [Line(SHORT, role=role) for role in roles]
    features = query_features_of("harbour", lines, dense=np.linspace(0.9, 0.1, len(lines)))
    ranked = RankingFeatures(features, compute_fields(features), np.arange(len(lines))).of("dense.partner")
    assert ranked is not None
    found: list[float] = ranked.tolist()
    return found


def test_a_reply_has_the_rank_of_what_it_answers() -> None:
    assert partners("user", "assistant")[1] == 1.0


def test_a_question_has_the_rank_of_its_reply() -> None:
    assert partners("assistant", "user", "assistant")[1] == pytest.approx(10 / 12)


def test_a_question_without_a_reply_has_none() -> None:
    assert partners("assistant", "user")[1] == 0.0
