"""Ranking by a linear model, and its explanation."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from modestream_client.vocabulary import Role

from agents.rules.index.columns import FloatArray, Mask
from agents.rules.ranking.features import (
    MAX_CONTEXT_SCORE,
    MAX_NEIGHBOUR_SCORE,
    LinearModel,
    RankingFeatures,
    RankingWeights,
    is_feature_name,
    reciprocal_ranks,
)
from agents.rules.ranking.memory_features import FEATURE_DECIMALS, MODEL_VARIANTS, compute_fields, question_traits
from agents.rules.ranking.ranking import (
    CALIBRATION_TEXT,
    INTERCEPT_TEXT,
    MAX_RERANKED,
    Explanation,
    Ranking,
    calibrate_by_rank,
    describe_feature,
    rank_memories,
)
from tests.builders.query_features import Line, query_features_of
from tests.harnesses.retrieval import WEIGHTS

LIVE = np.ones(4, np.bool_)
TALK = [Line("Shall we move the lesson?"), Line("The violin lesson is on Thursday."), Line("Fine."), Line("Soup.")]


def ranked(model: LinearModel, question: str = "violin lesson", **known: Any) -> tuple[Ranking, Explanation]:
    features = query_features_of(question, TALK, **known)
    ranking = rank_memories(features, LIVE, model)
    return ranking, Explanation(features, ranking)


def ids(ranking: Ranking, top_k: int, names: str = "dcba") -> list[str]:
    return [names[ranking.numbers[place]] for place in ranking.best(top_k, dict(enumerate(names)))]


def test_log_odds_are_intercept_plus_weighted_features() -> None:
    dense = np.array([0.3, 0.8, 0.3, 0.1])
    ranking, _ = ranked(LinearModel(-1.0, {"dense": 0.5, "?when*date": 9.0, "last": 2.0}), dense=dense)
    assert ranking.log_odds.tolist() == pytest.approx([-1.0, 1.0, -1.0, 0.2], abs=1e-6)


def test_best_breaks_ties_by_id() -> None:
    ranking, _ = ranked(LinearModel(0.0, {"dense": 1.0}), dense=np.array([0.5, 0.9, 0.5, 0.5]))
    assert ids(ranking, 4) == ["c", "a", "b", "d"]
    assert ids(ranking, 2) == ["c", "a"]


def test_floating_point_noise_does_not_decide_the_order() -> None:
    ranking, _ = ranked(LinearModel(0.0, {"dense": 1.0}), dense=np.array([0.5, 0.5 + 1e-12, 0.5, 0.5 - 1e-12]))
    assert ids(ranking, 4) == ["a", "b", "c", "d"]


def test_only_admitted_memories_are_ranked() -> None:
    features = query_features_of("violin", TALK)
    assert rank_memories(features, ~LIVE, LinearModel(0.0, {"words": 1.0})).numbers.tolist() == []
    assert rank_memories(features, LIVE & (np.arange(4) != 1), LinearModel(0.0, {})).numbers.tolist() == [0, 2, 3]


def test_first_stage_limits_the_reranked_memories() -> None:
    talk = [Line(f"Note {number}.") for number in range(MAX_RERANKED + 50)]
    near = np.linspace(0.0, 0.9, len(talk))
    ranking = rank_memories(
        query_features_of("note", talk, dense=near), np.ones(len(talk), np.bool_), LinearModel(0.0, {"dense": 1.0})
    )
    assert ranking.numbers.tolist() == list(range(50, len(talk)))


def test_score_is_a_probability() -> None:
    ranking, _ = ranked(LinearModel(-2.0, {"dense": 1.0}), dense=np.array([0.3, 0.55, 0.0, 0.0]))
    assert [ranking.score(0), ranking.score(1)] == pytest.approx([1 / (1 + math.exp(2)), 0.5], abs=1e-6)


def test_contributions_sum_to_the_log_odds_of_the_score() -> None:
    model = LinearModel(-1.5, {"dense": 0.5, "words": 0.2, "words-1": 0.1, "user": 0.3, "length": 0.7})
    ranking, explanation = ranked(model, dense=np.array([0.3, 0.8, 0.3, 0.1]))
    contributions = explanation.contributions(1)
    assert sum(contributions.values()) == pytest.approx(float(ranking.log_odds[1]), abs=1e-5)
    assert contributions[INTERCEPT_TEXT] == -1.5
    assert {"its meaning as a whole", "words of the question that it has", "who said it"} <= set(contributions)


def test_negative_contributions() -> None:
    _, explanation = ranked(LinearModel(0.0, {"question": -0.4}))
    assert explanation.contributions(0)["what it looks like"] == -0.4


def test_vectorless_memory_is_scored_by_words_and_calibrated() -> None:
    dense = np.array([0.3, 0.8, 0.3, 0.1])
    features = replace(query_features_of("violin lesson", TALK, dense=dense), embedded=LIVE & (np.arange(4) != 1))
    ranking = rank_memories(
        features, LIVE, LinearModel(-1.0, {"dense": 0.5}), by_words=LinearModel(-7.0, {"words": 1.0})
    )
    assert ranking.log_odds[[0, 2, 3]].tolist() == pytest.approx([-1.0, -1.0, -1.8], abs=1e-6)
    assert ids(ranking, 1) == ["c"], "the violin lesson, which no supposed vector has moved"
    contributions = Explanation(features, ranking).contributions(1)
    assert set(contributions) == {INTERCEPT_TEXT, "words of the question that it has", CALIBRATION_TEXT}
    assert sum(contributions.values()) == pytest.approx(float(ranking.log_odds[1]), abs=1e-5)
    assert CALIBRATION_TEXT not in Explanation(features, ranking).contributions(0)


@pytest.mark.parametrize("place", [0, 1, 20, 39])
@pytest.mark.parametrize("embedded", [0, 3, 39])
def test_vectorless_turn_with_the_word_ranks_first(place: int, embedded: int) -> None:
    talk = [Line(f"Specimen s{number:03d}x was labelled.") for number in range(40)]
    alike = np.full(40, 0.5)
    features = query_features_of(f"s{place:03d}x", talk, dense=alike, maxsim=alike)
    features = replace(features, embedded=np.arange(40) == embedded)
    models = RankingWeights.loads(WEIGHTS.read_text()).models
    ranking = rank_memories(features, np.ones(40, np.bool_), models["tokens"], by_words=models["words"])
    assert ranking.numbers[ranking.best(1, {number: f"m{number:02d}" for number in range(40)})[0]] == place


def test_topic_changes_the_order_and_is_explained() -> None:
    features = query_features_of("violin", TALK)
    ranking = rank_memories(features, LIVE, LinearModel(0.0, {"words": 0.0})).with_topics(
        np.array([0.0, 0.0, 1.0, 0.5])
    )
    assert ids(ranking, 2) == ["b", "a"]
    assert Explanation(features, ranking).contributions(2)["its topic"] == ranking.log_odds[2] > 0


def test_project_asked_in_changes_the_order_and_is_explained() -> None:
    features = query_features_of("violin", TALK)
    alike = rank_memories(features, LIVE, LinearModel(0.0, {"words": 0.0}))
    ranking = alike.with_project(np.array([False, False, True, False]))
    assert ids(ranking, 2) == ["b", "a"]
    assert Explanation(features, ranking).contributions(2)["its project"] == ranking.log_odds[2] > 0


def test_scores_of_a_hit_are_within_0_and_1() -> None:
    _, explanation = ranked(
        LinearModel(0.0, {}), dense=np.array([-0.3, 1.2, 0.5, 0.0]), maxsim=np.array([0.1, 0.9, 0.2, 1.1])
    )
    scores = [explanation.scores(place).model_dump() for place in range(4)]
    assert all(0 <= value <= 1 for score in scores for value in score.values())
    assert scores[0]["dense"] == 0
    assert scores[1]["dense"] == 1
    assert scores[1]["late"] == 0.9
    assert scores[3]["lexical"] == 0
    assert scores[1]["lexical"] > 0


def test_feature_is_none_without_its_question_trait() -> None:
    features = query_features_of("When is the lesson?", TALK)
    ranking_features = RankingFeatures(features, compute_fields(features), np.arange(4))
    asked, not_asked = ranking_features.of("?when*date"), ranking_features.of("?why*reason")
    assert asked is not None
    assert asked.tolist() == [0, 1, 0, 0]
    assert not_asked is None


def test_neighbour_of_a_full_match_does_not_outrank_it() -> None:
    features = query_features_of(
        "violin", [Line("Violin."), Line("Fine."), *(Line(f"Note {number}.") for number in range(30))]
    )
    ranking_features = RankingFeatures(features, compute_fields(features), np.arange(2))
    own, neighbour, around, best = (ranking_features.of(name) for name in ("words", "words-1", "around", "words.best"))
    assert own is not None
    assert neighbour is not None
    assert around is not None
    assert best is not None
    assert own[0] > MAX_CONTEXT_SCORE >= around[1]
    assert neighbour[1] == MAX_NEIGHBOUR_SCORE
    assert best[1] == MAX_CONTEXT_SCORE


def test_features_are_rounded() -> None:
    features = query_features_of("violin", TALK)
    length = RankingFeatures(features, compute_fields(features), np.arange(4)).of("length")
    assert length is not None
    assert length.tolist() == [round(value, FEATURE_DECIMALS) for value in length.tolist()]


HEAD = {"intercept": -3, "weights": {"words": 1.0}}


def same_for_all(model: dict[str, Any]) -> str:
    return json.dumps(dict.fromkeys(MODEL_VARIANTS, model))


def test_weights_are_loaded() -> None:
    weights = RankingWeights.loads(json.dumps(dict.fromkeys(MODEL_VARIANTS, HEAD)))
    assert weights.models["words"] == LinearModel(-3.0, {"words": 1.0})


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        json.dumps({"words": HEAD}),
        same_for_all({"weights": {}}),
        same_for_all({"intercept": 0}),
        same_for_all({"intercept": 0, "weights": {"colour": 1}}),
        same_for_all({"intercept": 0, "weights": {"words": "much"}}),
        same_for_all({"intercept": 0, "weights": {"words": float("nan")}}),
        same_for_all({"intercept": 0, "weights": {"words": True}}),
        "not json",
    ],
)
def test_invalid_weights_are_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"ranking weights|Expecting"):
        RankingWeights.loads(text)


def test_variant_rejects_features_it_cannot_compute() -> None:
    models = dict.fromkeys(MODEL_VARIANTS, HEAD) | {"vectors": {"intercept": 0, "weights": {"late+1": 1.0}}}
    with pytest.raises(ValueError, match=r"'vectors'.*'late\+1'"):
        RankingWeights.loads(json.dumps(models))


@pytest.mark.parametrize("name", ["late", "dense-2", "late.best", "late.answers", "?large*late", "words*question"])
def test_feature_name_is_valid(name: str) -> None:
    assert is_feature_name(name, maxsim=True, dense=True)
    features = query_features_of("violin", TALK, dense=np.zeros(4), maxsim=np.zeros(4))
    feature = RankingFeatures(features, compute_fields(features), np.arange(4)).of(name)
    assert feature is None or feature.shape == (4,)


@pytest.mark.parametrize("name", ["", "?when", "late+3", "late.worst", "?whenever*date", "late*", "colour*late"])
def test_feature_name_is_invalid(name: str) -> None:
    assert not is_feature_name(name, maxsim=True, dense=True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("late", "its meaning, word by word"),
        ("?foreign*dense", "its meaning as a whole"),
        ("words*longer", "words of the question that it has"),
        ("late-1", "the turns before and after it"),
        ("words.best", "the rest of its conversation"),
        ("?when*date", "what the question asks for"),
        ("named*first_person", "who said it"),
        ("lateness", "when it was said"),
        ("length2", "its length and its place in the conversation"),
        ("?people*named", "who said it"),
        ("?replies*?advised*assistant", "what the question asks for"),
        ("?replies*whole.rank", "its meaning as a whole"),
        ("?replies*late.partner", "the turns before and after it"),
        ("?replies*always", INTERCEPT_TEXT),
        ("courtesy", "what it looks like"),
    ],
)
def test_feature_descriptions(name: str, words: str) -> None:
    assert describe_feature(name) == words


EMBEDDED = np.array([True, True, True, False, False])
BY_ALL = np.array([2.0, 4.0, 1.0, 9.0, -9.0])


def calibrated(*by_words: float) -> list[float]:
    """Return the scores of two memories without a vector, among three with vectors and lexical scores of 1, 2 and 3."""
    found: list[float] = calibrate_by_rank(np.array([1.0, 2.0, 3.0, *by_words]), BY_ALL, EMBEDDED)[3:].tolist()
    return found


def test_embedded_memories_keep_their_score() -> None:
    assert calibrate_by_rank(np.arange(5.0), BY_ALL, EMBEDDED)[:3].tolist() == [2.0, 4.0, 1.0]


def test_same_rank_by_words_gets_the_same_score() -> None:
    assert calibrated(3.0, 1.0) == [4.0, 1.0]
    assert calibrated(2.0, 1.5) == [2.0, 1.5]


def test_scores_beyond_the_ranks_are_extrapolated() -> None:
    assert calibrated(3.5, -1.0) == [4.5, -1.0]


def test_ties_by_words_get_the_best_score() -> None:
    found = calibrate_by_rank(
        np.array([1.0, 1.0, 3.0, 1.0]), np.array([2.0, 5.0, 7.0, 0.0]), np.array([True, True, True, False])
    )
    assert found[3] == 5.0


def test_without_vectors_scores_by_words_are_returned() -> None:
    assert calibrate_by_rank(np.array([1.0, 2.0]), np.zeros(2), np.zeros(2, np.bool_)).tolist() == [1.0, 2.0]


VALUES = st.integers(-20, 20).map(float)


@given(
    arrays.arrays(np.float64, 12, elements=VALUES),
    arrays.arrays(np.float64, 12, elements=VALUES),
    arrays.arrays(np.bool_, 12),
)
def test_no_memory_ranks_lower_than_by_words(by_words: FloatArray, by_all: FloatArray, embedded: Mask) -> None:
    found = calibrate_by_rank(by_words, by_all, embedded)
    for place in np.flatnonzero(~embedded):
        assert (found[embedded] > found[place]).sum() <= (by_words[embedded] > by_words[place]).sum()
    in_order = np.argsort(by_words[~embedded], kind="stable")
    assert (np.diff(found[~embedded][in_order]) >= 0).all(), "among each other they stand as their words say"


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
