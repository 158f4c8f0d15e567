"""Training of the ranking: reading of conversations, fitting, files."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from agents.rules.ranking.features import RankingWeights, is_feature_name
from agents.rules.ranking.memory_features import MODEL_VARIANTS, ModelVariant
from agents.rules.text.non_english import is_non_english
from tests.builders.query_features import Line, query_features_of
from training.ranking.conversations import CROSSING, OWN, LabelledQuestion, read_conversations, training_conversations
from training.ranking.feature_list import REGIMES, list_features, must_help
from training.ranking.fitting import FittedModel, FittedRegimes, TrainingTable, data_digest, dump_weights
from training.ranking.library import Question
from training.ranking.samples import BY_HAND, Sample, compute_sample
from training.ranking.validation import recall_at_k

TALK = {
    "speaker_a": "Ana",
    "speaker_b": "Bo",
    "session_2_date_time": "9:05 am on 12 January, 2026",
    "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "Morning."}],
    "session_1_date_time": "8:00 pm on 2 January, 2026",
    "session_1": [
        {"speaker": "Ana", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a boat"},
        {"speaker": "bash", "dia_id": "D1:2", "text": "$ ls", "role": "tool"},
    ],
}
QUESTIONS = [
    {"question": "What is it?", "evidence": ["D1:01; D9:9", "D"], "category": 1},
    {"question": "Unknown?", "evidence": [], "category": 5},
]


def test_conversation_has_roles_captions_and_evidence_in_order(tmp_path: Path) -> None:
    sample = {"conversation": TALK, "qa": QUESTIONS}
    (tmp_path / "conv-x.json").write_text(json.dumps(sample))
    [conversation] = read_conversations(tmp_path)
    assert [turn.turn_id for turn in conversation.turns] == ["conv-x/D1:1", "conv-x/D1:2", "conv-x/D2:1"]
    assert [turn.role for turn in conversation.turns] == ["user", "tool", "assistant"]
    assert [resource.text for resource in conversation.turns[0].resources] == ["a boat"]
    [asked] = conversation.questions
    assert asked.evidence == ("conv-x/D1:1",)
    assert asked.named == 2


def test_every_own_conversation_is_readable_with_its_evidence() -> None:
    for conversation in read_conversations(OWN):
        assert conversation.turns
        assert all(len(asked.evidence) == asked.named > 0 for asked in conversation.questions), conversation.name


def test_cross_lingual_questions_reuse_turns_but_no_training_questions() -> None:
    ours = {conversation.name: conversation for conversation in read_conversations(OWN)}
    for crossing in read_conversations(CROSSING):
        own = ours[crossing.name]
        assert crossing.turns == own.turns
        assert all(len(asked.evidence) == asked.named > 0 for asked in crossing.questions), crossing.name
        assert {asked.text for asked in crossing.questions}.isdisjoint(asked.text for asked in own.questions)
        assert is_non_english(crossing.questions[0].text) != is_non_english(own.questions[0].text)


@pytest.mark.parametrize("variant", MODEL_VARIANTS)
def test_each_variant_has_only_features_it_can_compute(variant: ModelVariant) -> None:
    names = list_features(variant)
    assert len(names) == len(set(names))
    assert all(is_feature_name(name, maxsim=variant == "tokens", dense=variant != "words") for name in names)


def made_up(seed: int, *, useful: int) -> Sample:
    """Return a question among ten memories; the answer has the greatest value of the feature at this place."""
    drawn = np.random.default_rng(seed).standard_normal((10, 3)).astype(np.float32)
    features = query_features_of("x", [Line("y")])
    question = Question("u", "u", LabelledQuestion("x", ("m",), 1, 4), features, features.columns.live, frozenset())
    return Sample(question, 1.0, 0.0, drawn, np.zeros(10, np.float32), np.arange(10) == drawn[:, useful].argmax())


NAMES = ["dense", "length", "late"]


@cache
def fitted(*, useful: int, sign: float = 1.0) -> tuple[FittedModel, list[Sample]]:
    samples = [made_up(seed, useful=useful) for seed in range(300)]
    for sample in samples:
        sample.features[:, useful] *= sign
    table = TrainingTable(samples, NAMES)
    return table.fit(np.ones(len(table.samples))), samples


def test_informative_feature_gets_the_weight() -> None:
    model, samples = fitted(useful=1)
    assert model.weights[1] > 3 * np.abs(model.weights[[0, 2]]).max()
    assert recall_at_k(samples, model.log_odds).mean() > 0.99


def test_feature_that_must_help_never_gets_a_negative_weight() -> None:
    model, _ = fitted(useful=0, sign=-1.0)
    assert must_help("dense")
    assert model.weights[0] == 0
    other, _ = fitted(useful=1, sign=-1.0)
    assert not must_help("length")
    assert other.weights[1] < 0


def test_fitted_scores_are_probabilities() -> None:
    model, samples = fitted(useful=1)
    odds = np.concatenate([model.log_odds(sample) for sample in samples])
    hits = np.concatenate([sample.hits for sample in samples])
    assert (1 / (1 + np.exp(-odds))).mean() == pytest.approx(hits.mean(), abs=0.005)


def regimes() -> FittedRegimes:
    return FittedRegimes(fitted(useful=1)[0], fitted(useful=2)[0])


def question_of(replies: float) -> Sample:
    """Return a question among memories of which this share counts as long replies."""
    return replace(made_up(0, useful=1), replies=replies)


def test_short_turns_are_ranked_by_their_own_weights() -> None:
    assert regimes().sums(question_of(0.0)) == pytest.approx(regimes().people.log_odds(question_of(0.0)), abs=1e-6)


def test_long_replies_are_ranked_by_their_own_weights() -> None:
    assert regimes().sums(question_of(1.0)) == pytest.approx(regimes().replies.log_odds(question_of(1.0)), abs=1e-6)


def test_the_written_weights_give_the_fitted_log_odds() -> None:
    deviations = {regime: np.ones(3) for regime in REGIMES}
    written = json.loads(dump_weights({variant: (regimes(), NAMES, deviations) for variant in MODEL_VARIANTS}, "0a"))
    model, sample = written["tokens"], question_of(0.25)
    share = {"people": 0.75, "replies": 0.25}
    values = {name: sample.features[:, place] for place, name in enumerate(NAMES)} | {"always": np.ones(10)}
    odds = np.full(10, model["intercept"])
    for name, weight in model["weights"].items():
        regime, _, feature = name[1:].partition("*")
        odds = odds + share[regime] * weight * values.get(feature, np.zeros(10))
    assert odds == pytest.approx(regimes().sums(sample), abs=2e-3)


def test_same_samples_give_the_same_readable_file() -> None:
    deviations = {regime: np.ones(3) for regime in REGIMES}
    again = FittedRegimes(fitted.__wrapped__(useful=1)[0], fitted.__wrapped__(useful=2)[0])
    first, second = (
        dump_weights(dict.fromkeys(MODEL_VARIANTS, (each, NAMES, deviations)), "0a") for each in (regimes(), again)
    )
    assert first == second
    assert set(json.loads(first)["words"]["weights"]) >= {"?people*importance", "?replies*recency"}
    assert json.loads(first)["data_sha256"] == "0a"


def test_shipped_weights_use_known_features_with_allowed_signs() -> None:
    path = Path(__file__).parents[3] / "agents" / "data" / "ranking_weights.json"
    for name, model in RankingWeights.loads(path.read_text()).models.items():
        known = {*list_features(name), *BY_HAND, "always"}
        crossed = {f"?{regime}*{feature}" for regime in REGIMES for feature in known}
        assert set(model.weights) <= crossed
        features = [(feature.partition("*")[2], weight) for feature, weight in model.weights.items()]
        assert all(weight > 0 for feature, weight in features if must_help(feature))


def test_shipped_weights_were_fitted_to_these_conversations_and_features() -> None:
    path = Path(__file__).parents[3] / "agents" / "data" / "ranking_weights.json"
    fitted_to = json.loads(path.read_text()).get("data_sha256")
    assert fitted_to == data_digest(training_conversations()), "run make train-ranking"


def test_sample_has_likeliest_memories_first_and_marks_answers() -> None:
    features = query_features_of("violin", [Line("Soup."), Line("A violin."), Line("Good night.")])
    question = Question(
        "u", "u", LabelledQuestion("violin", ("m1",), 1, 4), features, features.columns.live, frozenset({1})
    )
    sample = compute_sample(question, "words", ["words", "?when*date"], 2)
    assert sample.hits.tolist() == [True, False]
    assert sample.features.shape == (2, 2)
    assert sample.features[0, 0] > sample.features[1, 0] == sample.features[1, 1] == 0
