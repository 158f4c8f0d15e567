"""Contexts through the whole pipeline: working memory, restarts and outages."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[InMemoryPipeline]:
    pipeline = InMemoryPipeline(tmp_path)
    async with pipeline.running():
        yield pipeline


PORT = "The relay of the harbour listens on port 4711."


def contents(reply: Json) -> list[str]:
    body = reply["result"]["messages"][1]["content"].partition("\n")[2]
    return [memory["content"] for memory in json.loads(body)["memories"]]


async def remember_conversation(pipeline: InMemoryPipeline, turns: int = 40) -> None:
    """Remember a conversation whose first turn is outside the recent window."""
    await pipeline.remember(PORT, "t-first", occurred_at="2026-02-01T09:00:00Z")
    for number in range(turns):
        text = f"Remark {number} was about the weather on the island, as all of that day's remarks were."
        await pipeline.remember(text, occurred_at=f"2026-02-01T10:{number:02}:00Z")
    await pipeline.topics.settled()


async def test_turn_outside_the_window_is_retrieved(pipeline: InMemoryPipeline) -> None:
    await remember_conversation(pipeline)
    first = pipeline.memory(PORT).memory_id
    reply = await pipeline.assemble(
        "which port does the relay of the harbour listen on?",
        conversation_id="c1",
        budget_tokens=800,
        interaction_mode="EXPLORATION",
    )
    sections = reply["result"]["sections"]
    assert sections["recent_window"]
    assert first not in sections["recent_window"]
    assert first in sections["retrieved_evidence"]
    assert PORT in contents(reply)


async def test_window_is_complete_after_a_restart(tmp_path: Path) -> None:
    asked: Json = {"conversation_id": "c1", "budget_tokens": 600, "interaction_mode": "EXPLORATION"}
    pipeline = InMemoryPipeline(tmp_path)
    async with pipeline.running():
        await remember_conversation(pipeline)
        before = await pipeline.assemble("where were we?", **asked)
    assert before["result"]["sections"]["recent_window"]
    async with pipeline.running():
        after = await pipeline.assemble("where were we?", **asked)
    # Each context has an id of its own.
    assert before["result"].pop("context_id") != after["result"].pop("context_id")
    assert after == before


async def test_context_without_vectors_has_a_warning(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember(PORT)
    await pipeline.topics.settled()
    pipeline.index.down()
    reply = await pipeline.assemble("which port?", conversation_id="c1")
    assert contents(reply) == [PORT]
    assert [warning["code"] for warning in reply["warnings"]] == ["degraded"]


async def test_edit_removes_the_rule_of_the_old_text(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("It must run offline.", "t-rule")
    await pipeline.topics.settled()
    assert (await pipeline.assemble("what now?"))["result"]["sticky"] == [
        pipeline.memory("It must run offline.").memory_id
    ]
    await pipeline.remember("It may run anywhere.", "t-rule")
    await pipeline.topics.settled()
    assert (await pipeline.assemble("what now?"))["result"]["sticky"] == []


async def test_a_value_that_was_changed_is_marked_and_comes_first(pipeline: InMemoryPipeline) -> None:
    await pipeline.remember("I live in Berlin.", "t-berlin", occurred_at="2026-02-01T09:00:00Z")
    await pipeline.remember("I live in Hamburg now.", "t-hamburg", occurred_at="2026-03-05T09:00:00Z")
    await pipeline.topics.settled()
    reply = await pipeline.assemble("where do I live?", conversation_id="c1", budget_tokens=800)
    body = reply["result"]["messages"][1]["content"].partition("\n")[2]
    marks = [(memory["content"], memory.get("changed_at")) for memory in json.loads(body)["memories"]]
    assert marks == [("I live in Berlin.", "2026-03-05T09:00:00Z"), ("I live in Hamburg now.", None)]
