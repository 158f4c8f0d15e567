"""Interaction modes of texts, by the classifier and recent model answers."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
from modestream_client.vocabulary import InteractionMode

from agents.ports.models import Embedder
from agents.rules.interaction.stability import Stability, assume_stable
from agents.understanding import interaction_reader
from agents.understanding.interaction_reader import InteractionReader
from schemas.failures import ModelMissing, Unavailable
from schemas.messages.assemble import AssembleRequest
from schemas.models.vectors import Encoded
from schemas.state.interaction import Interaction
from schemas.state.memories import Memory, Resource, TurnUnderstanding
from schemas.state.modes import GENERAL_MODE
from tests.builders.memories import made
from tests.builders.taxonomies import SHIPPED
from tests.fakes.classifier import FixedClassifier
from tests.fakes.embedders import FakeEmbedders

LEARNING = Interaction(mode="LEARNING", confidence=0.9)
PICTURE = Resource(uri="a", media_type="image/png", text="a cup")
UNSTABLE = replace(assume_stable(), reasons=("drift",))


class ReaderHarness:
    def __init__(self, mode: InteractionMode = "GENERAL", share: float = 0.2) -> None:
        self.embedders, self.classifier = FakeEmbedders(), FixedClassifier(mode, share)
        self.reader = InteractionReader(lambda: self.embedders.of(GENERAL_MODE), self.classifier, SHIPPED)

    async def judge(self, query: str, turns: Sequence[Memory] = (), stability: Stability | None = None) -> Interaction:
        fields: dict[str, Any] = {"scope": {"user_id": "ana"}, "conversation_id": "c1", "query": query}
        request = AssembleRequest.model_validate(fields | {"budget_tokens": 4000})
        return await self.reader.judge(request, turns, lambda _: stability or assume_stable())


def said(number: int, interaction: Interaction | None, role: str = "user") -> Memory:
    return made(f"turn {number}", number, role=role, reading=TurnUnderstanding(interaction=interaction))


async def test_text_is_classified_by_words_and_the_indexed_vector() -> None:
    harness = ReaderHarness("TASK", 0.9)
    read = await harness.reader.read(made("tea", resources=(PICTURE,)))
    assert read.mode == "TASK"
    [(text, vector)] = harness.classifier.asked
    assert text == "tea"
    model = harness.embedders.model("general")
    assert model.passages == ["tea [image: a cup]"]
    assert np.allclose(vector, (await model.passage("tea [image: a cup]")).pooled)


async def test_long_text_is_classified_by_a_vector_of_length_1() -> None:
    harness = ReaderHarness("TASK", 0.9)
    await harness.reader.read(made("\n\n".join(f"About topic{number}: {'some words ' * 30}" for number in range(4))))
    [(_, vector)] = harness.classifier.asked
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


async def test_leading_mode_is_returned_below_the_threshold() -> None:
    read = await ReaderHarness("TASK", 0.6).reader.read(made("tea"))
    assert read.mode == "TASK"
    assert read.confidence == 0.6


async def test_models_intent_counts() -> None:
    harness = ReaderHarness()
    assert (await harness.reader.read(made("tea"), intent="explain")).mode == "LEARNING"
    plain, general = [await harness.reader.read(made("tea"), intent=intent) for intent in (None, "general")]
    assert plain == general, "the intent `general` has no effect"


async def test_models_vote_counts() -> None:
    harness = ReaderHarness()
    vote = Interaction(mode="EXPLORATION", confidence=0.9)
    assert (await harness.reader.read(made("tea"), model=vote)).mode == "EXPLORATION"
    assert (await harness.reader.read(made("tea"))).confidence < vote.confidence


async def test_nothing_is_classified_without_the_general_embedder() -> None:
    harness = ReaderHarness()
    harness.embedders.missing("general")
    with pytest.raises(ModelMissing):
        await harness.reader.read(made("tea"))
    with pytest.raises(ModelMissing):
        await harness.judge("tea")
    harness.embedders.load("general")
    harness.embedders.model("general").outage = True
    with pytest.raises(Unavailable):
        await harness.reader.read(made("tea"))


async def test_request_is_classified_by_its_query_without_queueing() -> None:
    harness = ReaderHarness("TASK", 0.9)
    assert (await harness.judge("tea")).mode == "TASK"
    model = harness.embedders.model("general")
    assert model.queries == ["tea"]
    assert model.passages == []


async def test_users_last_turns_move_the_confidence() -> None:
    harness = ReaderHarness("LEARNING", 0.68)
    alone = await harness.judge("tea")
    steady = await harness.judge("tea", [said(number, LEARNING) for number in range(3)])
    assert alone.mode == "GENERAL"
    assert steady.mode == "LEARNING"
    assert steady.confidence > alone.confidence


async def test_other_speakers_and_older_turns_do_not_count() -> None:
    harness = ReaderHarness("LEARNING", 0.68)
    task = Interaction(mode="TASK", confidence=0.9)
    turns = [said(0, task), *(said(number, LEARNING) for number in (1, 2, 3)), said(4, task, "assistant")]
    assert (await harness.judge("tea", turns)).mode == "LEARNING"


async def test_unclassified_turn_is_classified_on_demand() -> None:
    harness = ReaderHarness("LEARNING", 0.9)
    await harness.judge("tea", [said(1, None), said(2, LEARNING)])
    assert [text for text, _ in harness.classifier.asked] == ["tea", "turn 1"]


async def test_unstable_deployment_is_general_unless_highly_confident() -> None:
    harness = ReaderHarness("TASK", 0.75)
    assert (await harness.judge("tea")).mode == "TASK"
    assert (await harness.judge("tea", stability=UNSTABLE)).mode == "GENERAL"
    harness.classifier.say("TASK", 0.95)
    assert (await harness.judge("tea", stability=UNSTABLE)).mode == "TASK"


class RefusingEmbedder:
    async def passage(self, *_: object, **__: object) -> Encoded:
        raise RuntimeError("the process died three times over this text")


async def test_text_that_the_model_refuses_has_no_interaction_mode() -> None:
    reader = InteractionReader(lambda: cast(Embedder, RefusingEmbedder()), FixedClassifier("GENERAL", 0.2), SHIPPED)
    with pytest.raises(ModelMissing, match="three times"):
        await reader.read(made("tea"))


async def test_context_waits_for_unclassified_turns_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = ReaderHarness("TASK", 0.9)
    model = harness.embedders.model("general")

    class BusyEmbedder:
        """An embedder that answers queries, and has a queue of passages."""

        query = model.query

        async def passage(self, text: str, *, boundary: str = "") -> Encoded:
            await asyncio.Event().wait()
            return await model.passage(text, boundary=boundary)

    harness.reader = InteractionReader(lambda: cast("Embedder", BusyEmbedder()), harness.classifier, SHIPPED)
    monkeypatch.setattr(interaction_reader, "HISTORY_TIMEOUT_S", 0.05)
    assert (await harness.judge("tea", [said(1, LEARNING)])).mode == "TASK"
    async with asyncio.timeout(5):
        with pytest.raises(Unavailable, match="not classified yet"):
            await harness.judge("tea", [said(1, LEARNING), said(2, None)])
