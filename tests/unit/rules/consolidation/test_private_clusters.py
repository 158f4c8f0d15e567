"""Clusters of private turns, and of turns that are filtered while a run is under way."""

import pytest

from agents.consolidation.summarise import Summarise
from agents.rules.consolidation.candidates import TurnCluster, digest_sources
from agents.rules.consolidation.distillation import distilled_memory, source_of
from agents.rules.memory.superseding import supersede_state
from agents.rules.prompts.prompting import Template
from schemas.internal.consolidation import Distilled
from schemas.state.memories import Memory
from schemas.state.visibility import EVERYWHERE, Visibility
from tests.builders.memories import START, made
from tests.fakes.language_model import FakeLanguageModel

PRIVATE = Visibility(private=True)
TEXT = "Watered the tomatoes in the greenhouse."


def turns_of(*own: Visibility) -> list[Memory]:
    return [made(TEXT, number, visibility=one, own_visibility=one) for number, one in enumerate(own)]


def cluster(*own: Visibility) -> TurnCluster:
    return TurnCluster([source_of(turn) for turn in turns_of(*own)], 0.9)


@pytest.mark.parametrize(
    ("last", "may_ask", "asked"), [(EVERYWHERE, True, 1), (EVERYWHERE, False, 0), (PRIVATE, True, 0)]
)
async def test_model_summarises_no_private_turn(last: Visibility, may_ask: bool, asked: int) -> None:
    model = FakeLanguageModel(lambda _: {"text": TEXT, "confidence": 0.9})
    summarise = Summarise(model, Template("# System\n\n# User\n{{said}}", "v1"))
    found = cluster(EVERYWHERE, EVERYWHERE, last)
    assert (await summarise.text(found, may_ask=may_ask)).by_model is (asked == 1)
    assert len(model.asked) == asked
    assert (summarise.expected_tokens(found) > 0) is (last == EVERYWHERE)


def test_summary_is_refused_once_a_turn_is_filtered_otherwise() -> None:
    turns = turns_of(EVERYWHERE, EVERYWHERE, EVERYWHERE)
    sources = [source_of(turn) for turn in turns]
    memory = distilled_memory(turns[0].scope, "ana", "general", sources, TEXT, confidence=0.9, run="r", at=START)
    event = Distilled(run="r", memory=memory, sources={one.memory_id: one.content_hash for one in turns})
    assert supersede_state(event, None, turns) == "due"
    filtered = [turns[0].model_copy(update={"visibility": PRIVATE}), *turns[1:]]
    assert supersede_state(event, None, filtered) == "refused"


def test_turns_that_are_no_longer_private_are_looked_at_again() -> None:
    private, public = cluster(PRIVATE, PRIVATE), cluster(EVERYWHERE, EVERYWHERE)
    assert digest_sources(private.sources, "s") != digest_sources(public.sources, "s")
