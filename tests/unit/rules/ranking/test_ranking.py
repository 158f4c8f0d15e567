"""The order of memories by a head of weights, and what explains it."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agents.rules.ranking.explanation import Explanation
from agents.rules.ranking.feature_names import CALIBRATION_TEXT, INTERCEPT_TEXT, describe_feature, is_feature_name
from agents.rules.ranking.features import FEATURE_DECIMALS, MAX_CONTEXT_SCORE, MAX_NEIGHBOUR_SCORE, RankingFeatures
from agents.rules.ranking.field_scores import compute_fields
from agents.rules.ranking.heads import MODEL_VARIANTS
from agents.rules.ranking.ranking import MAX_RERANKED, Ranking, rank_memories
from agents.rules.ranking.weights import LinearModel, RankingWeights
from tests.builders.query_features import Said, clues_of
from tests.harnesses.retrieval import WEIGHTS

LIVE = np.ones(4, np.bool_)
TALK = [Said("Shall we move the lesson?"), Said("The violin lesson is on Thursday."), Said("Fine."), Said("Soup.")]


def weighed(head: LinearModel, question: str = "violin lesson", **known: Any) -> tuple[Ranking, Explanation]:
    clues = clues_of(question, TALK, **known)
    ranking = rank_memories(clues, LIVE, head)
    return ranking, Explanation(clues, ranking)


def ids(ranking: Ranking, top_k: int, names: str = "dcba") -> list[str]:
    return [names[ranking.numbers[place]] for place in ranking.best(top_k, dict(enumerate(names)))]


def test_log_odds_are_the_intercept_and_each_signal_times_its_weight() -> None:
    dense = np.array([0.3, 0.8, 0.3, 0.1])
    ranking, _ = weighed(LinearModel(-1.0, {"dense": 0.5, "?when*date": 9.0, "last": 2.0}), dense=dense)
    assert ranking.log_odds.tolist() == pytest.approx([-1.0, 1.0, -1.0, 0.2], abs=1e-6)


def test_the_best_come_first_and_equal_ones_by_id() -> None:
    ranking, _ = weighed(LinearModel(0.0, {"dense": 1.0}), dense=np.array([0.5, 0.9, 0.5, 0.5]))
    assert ids(ranking, 4) == ["c", "a", "b", "d"]
    assert ids(ranking, 2) == ["c", "a"]


def test_noise_of_floating_point_decides_no_order() -> None:
    ranking, _ = weighed(LinearModel(0.0, {"dense": 1.0}), dense=np.array([0.5, 0.5 + 1e-12, 0.5, 0.5 - 1e-12]))
    assert ids(ranking, 4) == ["a", "b", "c", "d"]


def test_only_admitted_memories_are_weighed() -> None:
    clues = clues_of("violin", TALK)
    assert rank_memories(clues, ~LIVE, LinearModel(0.0, {"words": 1.0})).numbers.tolist() == []
    assert rank_memories(clues, LIVE & (np.arange(4) != 1), LinearModel(0.0, {})).numbers.tolist() == [0, 2, 3]


def test_of_very_many_the_most_likely_are_weighed() -> None:
    talk = [Said(f"Note {number}.") for number in range(MAX_RERANKED + 50)]
    near = np.linspace(0.0, 0.9, len(talk))
    ranking = rank_memories(
        clues_of("note", talk, dense=near), np.ones(len(talk), np.bool_), LinearModel(0.0, {"dense": 1.0})
    )
    assert ranking.numbers.tolist() == list(range(50, len(talk)))


def test_a_score_is_a_probability() -> None:
    ranking, _ = weighed(LinearModel(-2.0, {"dense": 1.0}), dense=np.array([0.3, 0.55, 0.0, 0.0]))
    assert [ranking.score(0), ranking.score(1)] == pytest.approx([1 / (1 + math.exp(2)), 0.5], abs=1e-6)


def test_contributions_sum_to_the_log_odds_of_the_score() -> None:
    head = LinearModel(-1.5, {"dense": 0.5, "words": 0.2, "words-1": 0.1, "user": 0.3, "length": 0.7})
    ranking, explanation = weighed(head, dense=np.array([0.3, 0.8, 0.3, 0.1]))
    contributions = explanation.contributions(1)
    assert sum(contributions.values()) == pytest.approx(float(ranking.log_odds[1]), abs=1e-5)
    assert contributions[INTERCEPT_TEXT] == -1.5
    assert {"its meaning as a whole", "words of the question that it has", "who said it"} <= set(contributions)


def test_what_takes_from_a_score_is_negative() -> None:
    _, explanation = weighed(LinearModel(0.0, {"question": -0.4}))
    assert explanation.contributions(0)["what it looks like"] == -0.4


def test_what_has_no_vector_is_weighed_by_words_and_stands_where_they_put_it() -> None:
    dense = np.array([0.3, 0.8, 0.3, 0.1])
    clues = replace(clues_of("violin lesson", TALK, dense=dense), embedded=LIVE & (np.arange(4) != 1))
    ranking = rank_memories(clues, LIVE, LinearModel(-1.0, {"dense": 0.5}), by_words=LinearModel(-7.0, {"words": 1.0}))
    assert ranking.log_odds[[0, 2, 3]].tolist() == pytest.approx([-1.0, -1.0, -1.8], abs=1e-6)
    assert ids(ranking, 1) == ["c"], "the violin lesson, which no supposed vector has moved"
    contributions = Explanation(clues, ranking).contributions(1)
    assert set(contributions) == {INTERCEPT_TEXT, "words of the question that it has", CALIBRATION_TEXT}
    assert sum(contributions.values()) == pytest.approx(float(ranking.log_odds[1]), abs=1e-5)
    assert CALIBRATION_TEXT not in Explanation(clues, ranking).contributions(0)


@pytest.mark.parametrize("place", [0, 1, 20, 39])
@pytest.mark.parametrize("embedded", [0, 3, 39])
def test_a_turn_without_a_vector_that_has_the_word_comes_first(place: int, embedded: int) -> None:
    talk = [Said(f"Specimen s{number:03d}x was labelled.") for number in range(40)]
    alike = np.full(40, 0.5)
    clues = clues_of(f"s{place:03d}x", talk, dense=alike, late=alike)
    clues = replace(clues, embedded=np.arange(40) == embedded)
    heads = RankingWeights.loads(WEIGHTS.read_text()).models
    ranking = rank_memories(clues, np.ones(40, np.bool_), heads["tokens"], by_words=heads["words"])
    assert ranking.numbers[ranking.best(1, {number: f"m{number:02d}" for number in range(40)})[0]] == place


def test_a_topic_is_one_more_signal_and_is_told() -> None:
    clues = clues_of("violin", TALK)
    ranking = rank_memories(clues, LIVE, LinearModel(0.0, {"words": 0.0})).with_topics(np.array([0.0, 0.0, 1.0, 0.5]))
    assert ids(ranking, 2) == ["b", "a"]
    assert Explanation(clues, ranking).contributions(2)["its topic"] == ranking.log_odds[2] > 0


def test_the_signals_of_a_hit_lie_within_bounds() -> None:
    _, explanation = weighed(
        LinearModel(0.0, {}), dense=np.array([-0.3, 1.2, 0.5, 0.0]), late=np.array([0.1, 0.9, 0.2, 1.1])
    )
    scores = [explanation.scores(place).model_dump() for place in range(4)]
    assert all(0 <= value <= 1 for one in scores for value in one.values())
    assert (scores[0]["dense"], scores[1]["dense"], scores[1]["late"], scores[3]["lexical"]) == (0, 1, 0.9, 0)
    assert scores[1]["lexical"] > 0


def test_a_trait_that_the_question_lacks_makes_a_signal_of_nothing() -> None:
    clues = clues_of("When is the lesson?", TALK)
    signals = RankingFeatures(clues, compute_fields(clues), np.arange(4))
    asked, not_asked = signals.of("?when*date"), signals.of("?why*reason")
    assert asked is not None
    assert (asked.tolist(), not_asked) == ([0, 1, 0, 0], None)


def test_what_stands_beside_a_whole_match_does_not_outdo_it() -> None:
    clues = clues_of("violin", [Said("Violin."), Said("Fine."), *(Said(f"Note {number}.") for number in range(30))])
    signals = RankingFeatures(clues, compute_fields(clues), np.arange(2))
    own, beside, around, best = (signals.of(name) for name in ("words", "words-1", "around", "words.best"))
    assert own is not None
    assert beside is not None
    assert around is not None
    assert best is not None
    assert own[0] > MAX_CONTEXT_SCORE >= around[1]
    assert (beside[1], best[1]) == (MAX_NEIGHBOUR_SCORE, MAX_CONTEXT_SCORE)


def test_a_signal_has_no_more_digits_than_are_the_same_everywhere() -> None:
    clues = clues_of("violin", TALK)
    length = RankingFeatures(clues, compute_fields(clues), np.arange(4)).of("length")
    assert length is not None
    assert length.tolist() == [round(value, FEATURE_DECIMALS) for value in length.tolist()]


HEAD = {"intercept": -3, "weights": {"words": 1.0}}


def everywhere(head: dict[str, Any]) -> str:
    """A file in which each head is this one."""
    return json.dumps(dict.fromkeys(MODEL_VARIANTS, head))


def test_weights_come_from_a_file() -> None:
    weights = RankingWeights.loads(json.dumps(dict.fromkeys(MODEL_VARIANTS, HEAD)))
    assert weights.models["words"] == LinearModel(-3.0, {"words": 1.0})


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{}",
        json.dumps({"words": HEAD}),
        everywhere({"weights": {}}),
        everywhere({"intercept": 0}),
        everywhere({"intercept": 0, "weights": {"colour": 1}}),
        everywhere({"intercept": 0, "weights": {"words": "much"}}),
        everywhere({"intercept": 0, "weights": {"words": float("nan")}}),
        everywhere({"intercept": 0, "weights": {"words": True}}),
        "not json",
    ],
)
def test_weights_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"ranking weights|Expecting"):
        RankingWeights.loads(text)


def test_a_head_may_only_weigh_what_it_knows() -> None:
    heads = dict.fromkeys(MODEL_VARIANTS, HEAD) | {"vectors": {"intercept": 0, "weights": {"late+1": 1.0}}}
    with pytest.raises(ValueError, match=r"'vectors'.*'late\+1'"):
        RankingWeights.loads(json.dumps(heads))


@pytest.mark.parametrize("name", ["late", "dense-2", "late.best", "late.answers", "?large*late", "words*question"])
def test_names_of_signals_that_can_be_computed(name: str) -> None:
    assert is_feature_name(name, late=True, dense=True)
    clues = clues_of("violin", TALK, dense=np.zeros(4), late=np.zeros(4))
    signal = RankingFeatures(clues, compute_fields(clues), np.arange(4)).of(name)
    assert signal is None or signal.shape == (4,)


@pytest.mark.parametrize("name", ["", "?when", "late+3", "late.worst", "?whenever*date", "late*", "colour*late"])
def test_names_of_signals_that_are_none(name: str) -> None:
    assert not is_feature_name(name, late=True, dense=True)


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
        ("courtesy", "what it looks like"),
    ],
)
def test_signals_have_names_for_people(name: str, words: str) -> None:
    assert describe_feature(name) == words
