"""Layers that a language model judges: where it was asked to, in time, and never with what was forgotten."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from schemas.models.language import Prompt
from tests.fakes.language_model import ONE_PROFILE
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, turn_message

GOAL = "My goal is to ship the beta in June."
TEXTS = (GOAL, "The beta tester is called Ben.", "We ship pallets by rail.")
UNCLEAR = "who tests the beta before we ship?"
"""By rules no layer suffices: nothing in the intention says "tests"."""


def judging(layer: str) -> Any:
    """Answer about layers that this one suffices, and about hits that the last is the best; nothing about turns."""

    def answer(prompt: Prompt) -> Json:
        if prompt.version == "suffice-1":
            return {"sufficient": layer, "reason": "the goal says so"}
        return {"order": [{"number": 2}, {"number": 1}]} if prompt.version == "rerank-1" else {}

    return answer


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    """A pipeline with a language model that says that the intention suffices, and a user with a goal."""
    async with InMemoryPipeline(tmp_path, profiles=ONE_PROFILE).running() as running:
        running.language.answers = judging("intention")
        for number, text in enumerate(TEXTS):
            assert (await running.ask(running.names.turns, turn_message(text, f"t{number}")))["status"] == "ok"
        await running.until(lambda: all(running.memory(text).reading.status != "pending" for text in TEXTS))
        await running.topics.settled()
        running.language.asked.clear()
        yield running


async def asked(pipeline: InMemoryPipeline, query: str = UNCLEAR, **fields: Any) -> Json:
    reply = await pipeline.retrieve(query, **{"depth": "auto", "sufficiency": "model", **fields})
    assert reply["status"] == "ok", reply
    return reply


def codes(reply: Json) -> list[str]:
    return [warning["code"] for warning in reply["warnings"]]


def without_times(reply: Json) -> Json:
    diagnostics = {name: value for name, value in reply["result"]["diagnostics"].items() if name != "took_ms"}
    return {**reply["result"], "diagnostics": diagnostics}


async def test_model_decides_the_layer_only_where_it_was_asked_to(pipeline: InMemoryPipeline) -> None:
    plain = await asked(pipeline, sufficiency=None)
    assert plain["result"]["diagnostics"]["depth"] == "items"
    assert (await asked(pipeline, depth="items"))["result"]["diagnostics"]["depth"] == "items"
    assert not pipeline.language.asked
    reply = await asked(pipeline, explain=True)
    assert codes(reply) == []
    assert len(pipeline.language.asked) == 1
    diagnostics = reply["result"]["diagnostics"]
    assert diagnostics["depth"] == "intention"
    assert diagnostics["sufficiency_by"] == "default"
    assert diagnostics["sufficiency_reason"] == "the goal says so"
    assert GOAL in [hit["text"] for hit in reply["result"]["hits"]]
    assert {hit["text"] for hit in reply["result"]["hits"]} < {*TEXTS}


async def test_model_sees_question_and_layers_as_fenced_data_and_no_memories(pipeline: InMemoryPipeline) -> None:
    await asked(pipeline)
    [prompt] = pipeline.language.asked
    assert UNCLEAR in prompt.user
    assert "ship the beta" in prompt.user
    assert "ship the beta" not in prompt.system
    assert TEXTS[1] not in prompt.user
    assert prompt.user.count(">>>") == 2


async def test_model_can_send_a_question_down_that_rules_would_not(pipeline: InMemoryPipeline) -> None:
    by_rules = await asked(pipeline, "when do we ship the beta?", sufficiency="rules")
    assert by_rules["result"]["diagnostics"]["depth"] == "intention"
    pipeline.language.answers = judging("none")
    reply = await asked(pipeline, "when do we ship the beta?")
    assert reply["result"]["diagnostics"]["depth"] == "items"
    assert codes(reply) == []
    assert len(reply["result"]["hits"]) == len(TEXTS)


@pytest.mark.parametrize("query", [UNCLEAR, "when do we ship the beta?"])
@pytest.mark.parametrize("trouble", ["down", "wrong", "categories", "silly"])
async def test_model_in_trouble_leaves_the_answer_of_the_rules(
    pipeline: InMemoryPipeline, query: str, trouble: Any
) -> None:
    plain = await asked(pipeline, query, sufficiency="rules")
    if trouble in ("down", "wrong"):
        pipeline.language.become(trouble)
    else:
        pipeline.language.answers = judging(trouble)
    reply = await asked(pipeline, query)
    assert codes(reply) == [*codes(plain), "sufficiency_by_rules"]
    assert without_times(reply) == without_times(plain)


async def test_model_that_hangs_is_given_up_in_time(tmp_path: Path) -> None:
    world = InMemoryPipeline(tmp_path, profiles=ONE_PROFILE)
    world.settings = world.settings.model_copy(update={"sufficiency": "model", "sufficiency_timeout_s": 0.05})
    async with world.running() as pipeline:
        await pipeline.ask(pipeline.names.turns, turn_message(GOAL, "t1"))
        await pipeline.until(lambda: pipeline.memory(GOAL).reading.status != "pending")
        await pipeline.topics.settled()
        pipeline.language.released.clear()
        reply = await asked(pipeline, sufficiency=None)
        assert codes(reply) == ["sufficiency_by_rules"]
        assert "within 0.1 s" in reply["warnings"][0]["message"]
        assert codes(await asked(pipeline, sufficiency="rules")) == []


async def test_operator_has_a_model_judge_the_layers_of_all_requests(pipeline: InMemoryPipeline) -> None:
    by_model = {"op": "config", "step_id": "retrieve.route", "config": {"by_model": True, "template": "suffice-1"}}
    assert (await pipeline.command("edit_pipeline", edits=[by_model]))["status"] == "ok"
    reply = await asked(pipeline, sufficiency=None)
    assert reply["result"]["diagnostics"]["depth"] == "intention"
    assert len(pipeline.language.asked) == 1
    off = {"op": "config", "step_id": "retrieve.route", "enabled": False}
    assert (await pipeline.command("edit_pipeline", edits=[off]))["status"] == "ok"
    assert (await asked(pipeline))["result"]["diagnostics"]["depth"] == "items"
    assert len(pipeline.language.asked) == 1


async def test_question_without_a_matching_layer_asks_no_model(pipeline: InMemoryPipeline) -> None:
    reply = await asked(pipeline, "what did the zebra eat?")
    assert reply["result"]["diagnostics"]["depth"] == "items"
    assert codes(reply) == []
    assert pipeline.language.asked == []


async def test_turn_forgotten_while_the_model_is_asked_is_in_no_answer(pipeline: InMemoryPipeline) -> None:
    pipeline.language.released.clear()
    waiting = asyncio.create_task(asked(pipeline, explain=True))
    await pipeline.until(lambda: bool(pipeline.language.asked))
    await pipeline.command("forget", turn_id="t0", conversation_id="c1")
    pipeline.language.released.set()
    reply = await waiting
    assert "June" not in str(reply)
    assert codes(reply) == []
    diagnostics = reply["result"]["diagnostics"]
    assert diagnostics["sufficiency_by"] == "default"
    assert diagnostics["depth"] == "items"
    assert "sufficiency_reason" not in diagnostics
    assert len(reply["result"]["hits"]) == 2


@pytest.mark.parametrize(
    ("behaviour", "fields", "searches"),
    [
        ("ok", {"sufficiency": "model", "depth": "auto"}, 1),
        ("ok", {"rerank": True}, 2),
        ("ok", {"rerank": True, "sufficiency": "model", "depth": "auto"}, 2),
        ("wrong", {"rerank": True}, 2),
        ("down", {"rerank": True}, 1),
        ("down", {"rerank": True, "sufficiency": "model", "depth": "auto"}, 1),
    ],
)
async def test_searches_are_repeated_only_where_a_model_was_asked(
    pipeline: InMemoryPipeline, behaviour: Any, fields: Json, searches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = []
    search = pipeline.index.search

    async def counting(*arguments: Any) -> Any:
        counted.append(arguments)
        return await search(*arguments)

    monkeypatch.setattr(pipeline.index, "search", counting)
    pipeline.language.answers = judging("none")
    pipeline.language.become(behaviour)
    await pipeline.retrieve(UNCLEAR)
    once = len(counted)
    counted.clear()
    reply = await pipeline.retrieve(UNCLEAR, **fields)
    assert reply["status"] == "ok"
    assert len(counted) == searches * once


async def test_deadline_leaves_time_for_the_search(pipeline: InMemoryPipeline) -> None:
    pipeline.language.released.clear()
    deadline = str(round(pipeline.clock.now().timestamp() * 1000) + 850).encode()
    fields = {"query": UNCLEAR, "depth": "auto", "sufficiency": "model"}
    request = {"schema": "retrieve.v1", "scope": {"user_id": "u1"}, **fields}
    reply = await pipeline.ask(pipeline.names.retrieve, request, (("deadline", deadline),))
    assert reply["status"] == "ok"
    assert codes(reply) == ["sufficiency_by_rules"]
    assert "within 0.3 s" in reply["warnings"][0]["message"], "of the 0.6 s before the margin"
    assert len(reply["result"]["hits"]) == len(TEXTS)


async def test_model_judges_no_layer_that_rests_on_a_private_memory(pipeline: InMemoryPipeline) -> None:
    memory_id = pipeline.memory(GOAL).memory_id
    assert (await pipeline.command("set_memory_visibility", memory_id=memory_id, private=True))["status"] == "ok"
    reply = await asked(pipeline)
    assert not [prompt for prompt in pipeline.language.asked if prompt.version == "suffice-1"]
    assert codes(reply) == ["sufficiency_by_rules"]
    await pipeline.command("set_memory_visibility", memory_id=memory_id, private=False)
    assert codes(await asked(pipeline)) == []
