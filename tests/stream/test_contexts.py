"""Contexts from the whole map: working memory, and what a restart or an outage leaves of it."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.worlds.in_memory_pipeline import InMemoryMap, Json


@pytest.fixture
async def the_map(tmp_path: Path) -> AsyncIterator[InMemoryMap]:
    the_map = InMemoryMap(tmp_path)
    async with the_map.running():
        yield the_map


PORT = "The relay of the harbour listens on port 4711."


def contents(reply: Json) -> list[str]:
    """The texts of the memories in an assembled context."""
    body = reply["result"]["messages"][1]["content"].partition("\n")[2]
    return [memory["content"] for memory in json.loads(body)["memories"]]


async def spoken(the_map: InMemoryMap, turns: int = 40) -> None:
    """A conversation whose first turn is far behind."""
    await the_map.remember(PORT, "t-first", occurred_at="2026-02-01T09:00:00Z")
    for number in range(turns):
        text = f"Remark {number} was about the weather on the island, as all of that day's remarks were."
        await the_map.remember(text, occurred_at=f"2026-02-01T10:{number:02}:00Z")
    await the_map.topics.settled()


async def test_what_falls_out_of_the_window_is_still_found(the_map: InMemoryMap) -> None:
    await spoken(the_map)
    first = the_map.memory(PORT).memory_id
    reply = await the_map.assemble(
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


async def test_a_restart_brings_the_window_back(tmp_path: Path) -> None:
    asked: Json = {"conversation_id": "c1", "budget_tokens": 600, "interaction_mode": "EXPLORATION"}
    the_map = InMemoryMap(tmp_path)
    async with the_map.running():
        await spoken(the_map)
        before = await the_map.assemble("where were we?", **asked)
    assert before["result"]["sections"]["recent_window"]
    async with the_map.running():
        assert await the_map.assemble("where were we?", **asked) == before


async def test_a_search_without_vectors_still_gives_a_context_and_says_so(the_map: InMemoryMap) -> None:
    await the_map.remember(PORT)
    await the_map.topics.settled()
    the_map.index.down()
    reply = await the_map.assemble("which port?", conversation_id="c1")
    assert contents(reply) == [PORT]
    assert [warning["code"] for warning in reply["warnings"]] == ["degraded"]


async def test_an_edit_takes_the_rule_away_that_the_text_was(the_map: InMemoryMap) -> None:
    await the_map.remember("It must run offline.", "t-rule")
    await the_map.topics.settled()
    assert (await the_map.assemble("what now?"))["result"]["sticky"] == [
        the_map.memory("It must run offline.").memory_id
    ]
    await the_map.remember("It may run anywhere.", "t-rule")
    await the_map.topics.settled()
    assert (await the_map.assemble("what now?"))["result"]["sticky"] == []
