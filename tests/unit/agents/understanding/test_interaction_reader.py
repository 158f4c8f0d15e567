"""Interaction modes of texts, by the classifier and recent model answers."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from agents.ports.embedder import Embedder
from agents.rules.interaction.decision import DRIFT_WINDOW
from agents.understanding.interaction_reader import InteractionReader
from schemas.failures import ModelMissing, Unavailable
from schemas.messages.assemble import AssembleRequest
from schemas.models.vectors import Encoded
from schemas.state.interaction import Interaction, InteractionMode
from schemas.state.memories import Memory, TurnUnderstanding
from schemas.state.modes import GENERAL_MODE
from tests.builders.memories import made
from tests.fakes.classifier import FixedClassifier
from tests.fakes.embedders import FakeEmbedders

LEARNING = Interaction(mode="LEARNING", confidence=0.9)


class ReaderHarness:
    """`InteractionReader` with its embedder and classifier."""

    def __init__(self, mode: InteractionMode = "GENERAL", share: float = 0.2) -> None:
        self.embedders, self.classifier = FakeEmbedders(), FixedClassifier(mode, share)
        self.reader = InteractionReader(lambda: self.embedders.of(GENERAL_MODE), self.classifier)

    async def judge(self, query: str, turns: Sequence[Memory] = ()) -> Interaction:
        """Return the interaction mode of a request."""
        fields: dict[str, Any] = {"scope": {"user_id": "ana"}, "conversation_id": "c1", "query": query}
        return await self.reader.judge(AssembleRequest.model_validate(fields | {"budget_tokens": 4000}), turns)


def said(number: int, interaction: Interaction | None, role: str = "user") -> Memory:
    return made(f"turn {number}", number, role=role, reading=TurnUnderstanding(interaction=interaction))


async def test_text_is_classified_by_words_and_the_indexed_vector() -> None:
    judging = ReaderHarness("TASK", 0.9)
    read = await judging.reader.read("tea", "tea [image: a cup]")
    assert read.mode == "TASK"
    [(text, vector)] = judging.classifier.asked
    assert text == "tea"
    model = judging.embedders.model("general")
    assert model.passages == ["tea [image: a cup]"]
    assert np.allclose(vector, (await model.passage("tea [image: a cup]")).pooled)


async def test_stored_interaction_is_not_classified_again() -> None:
    judging = ReaderHarness("TASK", 0.9)
    model = judging.embedders.model("general")
    shares = np.array([0.01, 0.02, 0.9, 0.03, 0.04], np.float32)

    class ReadingEmbedder:
        """An embedder that records its inputs."""

        async def passage(self, text: str) -> Encoded:
            return replace(await model.passage(text), interaction_probabilities=shares)

    reader = InteractionReader(lambda: cast("Embedder", ReadingEmbedder()), judging.classifier)
    assert (await reader.read("tea", "tea")).mode == "DEBUGGING"
    assert judging.classifier.asked == []
    assert (await reader.read("tea", "tea [image: a cup]")).mode == "TASK", "captions are not what the turn is for"


async def test_leading_mode_is_returned_below_the_threshold() -> None:
    read = await ReaderHarness("TASK", 0.6).reader.read("tea", "tea")
    assert read == Interaction(mode="TASK", confidence=0.6)


async def test_models_intent_counts() -> None:
    judging = ReaderHarness()
    assert (await judging.reader.read("tea", "tea", intent="explain")).mode == "LEARNING"
    plain, said = [await judging.reader.read("tea", "tea", intent=intent) for intent in (None, "general")]
    assert plain == said, "that nothing is meant says nothing"


async def test_models_vote_counts() -> None:
    judging = ReaderHarness()
    vote = Interaction(mode="EXPLORATION", confidence=0.9)
    assert (await judging.reader.read("tea", "tea", model=vote)).mode == "EXPLORATION"
    assert (await judging.reader.read("tea", "tea")).confidence < vote.confidence


async def test_classification_does_not_depend_on_earlier_texts() -> None:
    judging = ReaderHarness("TASK", 0.75)
    first = await judging.reader.read("tea", "tea")
    for _ in range(DRIFT_WINDOW):
        judging.reader.record_classification(Interaction(mode="DEBUGGING", confidence=1))
    assert await judging.reader.read("tea", "tea") == first


async def test_nothing_is_classified_without_the_general_embedder() -> None:
    judging = ReaderHarness()
    judging.embedders.missing("general")
    with pytest.raises(ModelMissing):
        await judging.reader.read("tea", "tea")
    with pytest.raises(ModelMissing):
        await judging.judge("tea")
    judging.embedders.load("general")
    judging.embedders.model("general").outage = True
    with pytest.raises(Unavailable):
        await judging.reader.read("tea", "tea")


async def test_request_is_classified_by_its_query_without_queueing() -> None:
    judging = ReaderHarness("TASK", 0.9)
    assert (await judging.judge("tea")).mode == "TASK"
    model = judging.embedders.model("general")
    assert (model.queries, model.passages) == (["tea"], [])


async def test_users_last_turns_move_the_confidence() -> None:
    judging = ReaderHarness("LEARNING", 0.68)
    alone = await judging.judge("tea")
    steady = await judging.judge("tea", [said(number, LEARNING) for number in range(3)])
    assert (alone.mode, steady.mode) == ("GENERAL", "LEARNING")
    assert steady.confidence > alone.confidence


async def test_other_speakers_and_older_turns_do_not_count() -> None:
    judging = ReaderHarness("LEARNING", 0.68)
    task = Interaction(mode="TASK", confidence=0.9)
    turns = [said(0, task), *(said(number, LEARNING) for number in (1, 2, 3)), said(4, task, "assistant")]
    assert (await judging.judge("tea", turns)).mode == "LEARNING"


async def test_unclassified_turn_is_classified_on_demand() -> None:
    judging = ReaderHarness("LEARNING", 0.9)
    await judging.judge("tea", [said(1, None), said(2, LEARNING)])
    assert [text for text, _ in judging.classifier.asked] == ["tea", "turn 1"]


def noted(judging: ReaderHarness, mode: InteractionMode, times: int, *, corrected: int = 0) -> None:
    for number in range(times):
        judging.reader.record_classification(Interaction(mode=mode, confidence=0.9))
        if number < corrected:
            judging.reader.record_correction()


def test_drift_is_reported_if_recent_modes_differ() -> None:
    judging = ReaderHarness()
    assert not judging.reader.is_unstable
    noted(judging, "TASK", DRIFT_WINDOW)
    noted(judging, "LEARNING", DRIFT_WINDOW - 1)
    assert not judging.reader.is_unstable, "as long as there are not as many it always looks like drift"
    noted(judging, "LEARNING", 1)
    assert judging.reader.is_unstable
    noted(judging, "LEARNING", DRIFT_WINDOW)
    assert not judging.reader.is_unstable, "what was new has become what was before"


def test_many_corrections_are_noticed() -> None:
    judging = ReaderHarness()
    judging.reader.record_correction()
    noted(judging, "TASK", DRIFT_WINDOW, corrected=10)
    noted(judging, "TASK", DRIFT_WINDOW, corrected=20)
    assert not judging.reader.is_unstable
    noted(judging, "TASK", DRIFT_WINDOW, corrected=41)
    assert judging.reader.is_unstable


async def test_unstable_deployment_is_general_unless_highly_confident() -> None:
    judging = ReaderHarness("TASK", 0.75)
    assert (await judging.judge("tea")).mode == "TASK"
    noted(judging, "TASK", DRIFT_WINDOW)
    noted(judging, "LEARNING", DRIFT_WINDOW)
    assert (await judging.judge("tea")).mode == "GENERAL"
    judging.classifier.say("TASK", 0.95)
    assert (await judging.judge("tea")).mode == "TASK"
