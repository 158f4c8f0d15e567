"""Private memories through the whole pipeline: found as any other, and in no prompt for a language model."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from schemas.models.language import Prompt
from tests.fakes.language_model import ONE_PROFILE, marked_mode
from tests.worlds.consolidation import WATERED, consolidate, of_origin, remember_many
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json, turn_message

ADDRESS = "My address is 9 Xanthoma Street."
MARK = "Xanthoma"
LUNCH = "Lunch was pumpkin soup."


def answered(prompt: Prompt) -> dict[str, Any]:
    """Answer a question about a turn, a cluster, a category, or an order: whatever is asked for finds its field."""
    return {
        **marked_mode(prompt),
        "text": "Watered the tomatoes in the greenhouse, they look healthy.",
        "summary": "All about the deploy target.",
        "order": [{"number": number} for number in (3, 2, 1)],
    }


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    """A pipeline with a language model that answers every step."""
    async with InMemoryPipeline(tmp_path, profiles=ONE_PROFILE).running() as running:
        running.language.answers = answered
        yield running


async def say(pipeline: InMemoryPipeline, text: str, turn_id: str | None = None, **fields: Any) -> Json:
    reply = await pipeline.ask(pipeline.names.turns, turn_message(text, turn_id or text, **fields))
    assert reply["status"] == "ok", reply
    return dict(reply["result"])


async def set_private(pipeline: InMemoryPipeline, *memory_ids: str, private: bool = True) -> Json:
    reply = await pipeline.command("set_memory_visibility", memory_ids=list(memory_ids), private=private)
    assert reply["status"] == "ok", reply
    return dict(reply["result"])


async def until_read(pipeline: InMemoryPipeline) -> None:
    await pipeline.until(lambda: all(memory.reading.status != "pending" for memory in pipeline.memories.all()))
    await pipeline.topics.settled()


def prompts_with(pipeline: InMemoryPipeline, text: str) -> int:
    """Count the prompts that arrived at the language model with this text."""
    return sum(text in f"{prompt.system}\n{prompt.user}" for prompt in pipeline.language.asked)


async def test_private_turn_is_found_and_in_contexts_and_in_no_prompt(pipeline: InMemoryPipeline) -> None:
    await say(pipeline, ADDRESS, private=True)
    await say(pipeline, LUNCH)
    await until_read(pipeline)
    assert prompts_with(pipeline, LUNCH) == 1
    assert prompts_with(pipeline, MARK) == 0, "nor as a recent turn of the next one"
    assert pipeline.memory(ADDRESS).reading.status == "rules"
    [hit, _] = (await pipeline.retrieve("what is my address?"))["result"]["hits"]
    assert hit["text"] == ADDRESS
    assert hit["private"] is True
    assert MARK in str((await pipeline.assemble("what is my address?"))["result"]["messages"])
    listed = {item["text"]: item for item in (await pipeline.list_page())["result"]["items"]}
    assert listed[ADDRESS]["private"] is True
    assert "private" not in listed[LUNCH]
    assert {memory.visibility.private for memory in of_origin(pipeline, "extracted") if MARK in memory.text} == {True}


async def test_queued_turn_that_becomes_private_is_not_asked_about(pipeline: InMemoryPipeline) -> None:
    pipeline.language.become("down")
    accepted = await say(pipeline, ADDRESS)
    await pipeline.topics.settled()
    assert pipeline.memory(ADDRESS).reading.status == "pending"
    assert await set_private(pipeline, accepted["memory_id"]) == {"changed": 1}
    pipeline.language.become("ok")
    await say(pipeline, LUNCH)
    await until_read(pipeline)
    assert prompts_with(pipeline, MARK) == 0
    await set_private(pipeline, accepted["memory_id"], private=False)
    await until_read(pipeline)
    assert pipeline.memory(ADDRESS).reading.status == "model", "taken back, it is read as any other"


async def test_turns_of_a_private_mode_are_in_no_prompt(pipeline: InMemoryPipeline) -> None:
    await pipeline.command("declare_mode", name="health", embedder="tiny32", private=True)
    moved = await say(pipeline, f"{LUNCH} It was {MARK}.", private=False, mode="health")
    await until_read(pipeline)
    assert prompts_with(pipeline, MARK) == 0
    record = (await pipeline.command("get_memory", memory_id=moved["memory_id"]))["result"]
    assert record["private"] is True
    assert record["own_visibility"] == {"searchable": True, "private": False}
    await pipeline.command("declare_mode", name="health", embedder="tiny32", private=False)
    await until_read(pipeline)
    assert prompts_with(pipeline, MARK) == 1


async def test_moved_turn_gets_the_filter_of_its_new_mode(pipeline: InMemoryPipeline) -> None:
    pipeline.language.become("down")
    await pipeline.command("declare_mode", name="health", embedder="tiny32", private=True)
    moved = await say(pipeline, ADDRESS)
    await pipeline.command("set_memory_mode", memory_id=moved["memory_id"], mode="health")
    pipeline.language.become("ok")
    await until_read(pipeline)
    assert prompts_with(pipeline, MARK) == 0


async def test_private_turns_are_summarised_apart_and_by_rules(pipeline: InMemoryPipeline) -> None:
    await remember_many(pipeline, 4)
    await remember_many(pipeline, 4, f"{WATERED[:-1]} with {MARK}.", private=True)
    await until_read(pipeline)
    pipeline.language.asked.clear()
    result = await consolidate(pipeline)
    assert len(result["created"]) == 2
    assert result["modes"]["general"]["by_model"] == 1
    assert prompts_with(pipeline, "greenhouse") == 1
    assert prompts_with(pipeline, MARK) == 0
    summaries = of_origin(pipeline, "distilled")
    assert {(MARK in summary.text, summary.visibility.private) for summary in summaries} == {
        (True, True),
        (False, False),
    }


async def test_summary_of_a_turn_that_becomes_private_is_withdrawn(pipeline: InMemoryPipeline) -> None:
    await remember_many(pipeline, 4)
    await until_read(pipeline)
    result = await consolidate(pipeline)
    await set_private(pipeline, result["superseded"][0])
    assert of_origin(pipeline, "distilled") == []
    assert [memory.superseded_by for memory in of_origin(pipeline, "said")] == [None] * 4


async def test_category_summary_by_a_model_has_no_private_item(pipeline: InMemoryPipeline) -> None:
    await pipeline.command("declare_category", name="deploying", description="deploy target and port")
    await say(pipeline, "The deploy target is fly.io now.")
    await say(pipeline, f"The deploy port is 9410 for {MARK}.", private=True)
    await until_read(pipeline)
    pipeline.language.asked.clear()
    await consolidate(pipeline)
    shown = (await pipeline.command("get_category", name="deploying"))["result"]
    assert shown["summary"] == "All about the deploy target."
    assert prompts_with(pipeline, "fly.io") == 1
    assert prompts_with(pipeline, MARK) == 0


async def test_model_orders_hits_around_a_private_one(pipeline: InMemoryPipeline) -> None:
    texts = ["The lantern is in the hall.", "The lantern is red.", "A lantern was sold."]
    for text in texts:
        await say(pipeline, text)
    await until_read(pipeline)
    plain = [hit["text"] for hit in (await pipeline.retrieve("where is the lantern?"))["result"]["hits"]]
    await set_private(pipeline, pipeline.memory(plain[1]).memory_id)
    pipeline.language.asked.clear()
    pipeline.language.answers = lambda _: {"order": [{"number": 2}, {"number": 1}]}
    reply = await pipeline.retrieve("where is the lantern?", rerank=True)
    assert [hit["text"] for hit in reply["result"]["hits"]] == [plain[2], plain[1], plain[0]]
    assert prompts_with(pipeline, json.dumps(plain[1])) == 0
    assert prompts_with(pipeline, json.dumps(plain[0])) == 1
