"""Hits that a language model orders: where it was asked for, in time, and never with what was forgotten."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from schemas.models.language import Prompt
from streams.flow.steps import answer
from tests.builders.custom_steps import BrokenQuery
from tests.fakes.language_model import ONE_PROFILE
from tests.stream.pipelines.test_editing import edit, insert
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, turn_message

TEXTS = ("The lantern is in the hall.", "The lantern is red.", "A lantern was sold.")


def best_last(prompt: Prompt) -> Json:
    """Order memories from the last shown to the first; answer nothing about turns."""
    numbers = [int(number) for number in re.findall(r'"number": (\d+)', prompt.user)]
    return {"order": [{"number": number, "reason": f"was {number}"} for number in reversed(numbers)]}


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    """A pipeline with a language model that reverses the order of hits, and a user with three turns."""
    async with InMemoryPipeline(tmp_path, profiles=ONE_PROFILE).running() as running:
        running.language.answers = best_last
        for number, text in enumerate(TEXTS):
            assert (await running.ask(running.names.turns, turn_message(text, f"t{number}")))["status"] == "ok"
        await running.until(lambda: all(running.memory(text).reading.status != "pending" for text in TEXTS))
        await running.topics.settled()
        running.language.asked.clear()
        yield running


def texts(reply: Json) -> list[str]:
    return [hit["text"] for hit in reply["result"]["hits"]]


def codes(reply: Json) -> list[str]:
    return [warning["code"] for warning in reply["warnings"]]


async def asked(pipeline: InMemoryPipeline, **fields: Any) -> Json:
    return await pipeline.retrieve("where is the lantern?", **fields)


async def test_model_orders_hits_only_where_it_was_asked_to(pipeline: InMemoryPipeline) -> None:
    plain = await asked(pipeline)
    assert not pipeline.language.asked
    reply = await asked(pipeline, rerank=True, explain=True, top_k=2)
    assert texts(reply) == texts(plain)[::-1][:2]
    assert codes(reply) == []
    diagnostics = reply["result"]["diagnostics"]
    assert diagnostics["reranked_by"] == "default"
    ids = [hit["memory_id"] for hit in reply["result"]["hits"]]
    assert diagnostics["reasons"] == dict(zip(ids, ["was 3", "was 2"], strict=True))
    assert len(pipeline.language.asked) == 1


@pytest.mark.parametrize("behaviour", ["down", "wrong"])
async def test_model_in_trouble_leaves_the_order_with_a_warning(pipeline: InMemoryPipeline, behaviour: Any) -> None:
    plain = await asked(pipeline)
    pipeline.language.become(behaviour)
    reply = await asked(pipeline, rerank=True)
    assert texts(reply) == texts(plain)
    assert codes(reply) == ["not_reranked"]


@pytest.mark.parametrize("order", [[], [{"number": 77}]])
async def test_answer_that_names_no_hit_leaves_the_order(pipeline: InMemoryPipeline, order: list[Json]) -> None:
    plain = await asked(pipeline)
    pipeline.language.answers = lambda _: {"order": order}
    reply = await asked(pipeline, rerank=True)
    assert texts(reply) == texts(plain)
    assert codes(reply) == ["not_reranked"]


async def test_model_that_hangs_is_given_up_in_time(tmp_path: Path) -> None:
    world = InMemoryPipeline(tmp_path, profiles=ONE_PROFILE)
    world.settings = world.settings.model_copy(update={"rerank": True, "rerank_timeout_s": 0.05})
    async with world.running() as pipeline:
        pipeline.language.answers = best_last
        for number, text in enumerate(TEXTS):
            await pipeline.ask(pipeline.names.turns, turn_message(text, f"t{number}"))
        await pipeline.until(lambda: all(pipeline.memory(text).reading.status != "pending" for text in TEXTS))
        pipeline.language.released.clear()
        reply = await asked(pipeline)
        assert len(texts(reply)) == 3
        assert codes(reply) == ["not_reranked"]
        assert "within 0.1 s" in reply["warnings"][0]["message"]
        assert codes(await asked(pipeline, rerank=False)) == []


async def test_turn_forgotten_while_the_model_is_asked_is_in_no_answer(pipeline: InMemoryPipeline) -> None:
    pipeline.language.released.clear()
    waiting = asyncio.create_task(asked(pipeline, rerank=True))
    await pipeline.until(lambda: bool(pipeline.language.asked))
    await pipeline.command("forget", turn_id="t1", conversation_id="c1")
    pipeline.language.released.set()
    reply = await waiting
    assert TEXTS[1] in pipeline.language.asked[0].user
    assert sorted(texts(reply)) == [TEXTS[2], TEXTS[0]]
    assert "reranked_by" in reply["result"]["diagnostics"]


SYNONYMS = {"words": {"torch?": "lantern?"}}


async def test_model_is_shown_the_query_that_custom_steps_have_left(pipeline: InMemoryPipeline) -> None:
    await edit(pipeline, insert("retrieve.words", "retrieve.receive", "Synonyms", **SYNONYMS))
    reply = await pipeline.retrieve("where is the torch?", rerank=True)
    [prompt] = pipeline.language.asked
    assert "where is the lantern?" in prompt.user
    assert "torch" not in prompt.user
    assert len(texts(reply)) == 3
    assert codes(reply) == []


async def test_query_is_decided_once_and_its_failed_step_is_told_once(
    pipeline: InMemoryPipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BrokenQuery, "calls", 0)
    monkeypatch.setattr(answer, "MAX_READ_AFTER_WAIT_S", 0.1)
    await edit(pipeline, insert("retrieve.broken", "retrieve.receive", "BrokenQuery"))
    reply = await asked(pipeline, rerank=True, read_after=10**9)
    assert sorted(codes(reply)) == ["not_caught_up", "step_failed"]
    assert "reranked_by" in reply["result"]["diagnostics"]
    assert BrokenQuery.calls == 1
