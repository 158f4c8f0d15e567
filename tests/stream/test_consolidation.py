"""Consolidation over the whole map: what it distils, that it does so once, and what a kill leaves."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from schemas.memories import Memory
from streams.flow import consolidating
from tests.stream.in_memory_map import InMemoryMap, Json

WATERED = "Watered the tomatoes in the greenhouse on day {}, they look healthy."


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consolidating, "LOOK_EVERY_S", 0.001)


@pytest.fixture
async def the_map(tmp_path: Path) -> AsyncIterator[InMemoryMap]:
    async with InMemoryMap(tmp_path).running() as running:
        yield running


async def said(the_map: InMemoryMap, count: int, text: str = WATERED, **fields: Any) -> None:
    """So many turns that say nearly the same, with their vectors."""
    for number in range(count):
        await the_map.remember(text.format(number), occurred_at=f"2026-02-{number + 1:02}T08:00:00Z", **fields)
    await the_map.topics.settled()


async def consolidate(the_map: InMemoryMap, mode: str | None = None, **scope: str) -> Json:
    trigger = {"schema": "consolidate.v1", "scope": {"user_id": "u1", **scope}, "mode": mode}
    reply = await the_map.ask(the_map.names.consolidate, trigger)
    assert reply["status"] == "ok", reply
    return dict(reply["result"])


def of_origin(the_map: InMemoryMap, origin: str) -> list[Memory]:
    return [memory for memory in the_map.memories.all() if memory.origin == origin]


async def test_what_was_said_again_and_again_becomes_one_memory_and_the_second_run_creates_nothing(
    the_map: InMemoryMap,
) -> None:
    await said(the_map, 12)
    await the_map.remember("The violin needs a new bow.")
    first = await consolidate(the_map)
    [memory] = of_origin(the_map, "distilled")
    assert first["created"] == [memory.memory_id]
    assert len(first["superseded"]) == 12
    assert first["modes"]["general"]["superseded"] == 12
    assert [(one["op"], one["memory_id"]) for one in first["diff"]] == [("distil", memory.memory_id)]
    assert {one.memory_id for one in memory.evidence} == set(first["superseded"])
    second = await consolidate(the_map)
    assert (second["created"], second["superseded"]) == ([], [])
    assert len(of_origin(the_map, "distilled")) == 1
