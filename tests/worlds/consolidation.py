"""Turns, runs and results for tests of consolidation."""

from typing import Any

from schemas.state.memories import Memory
from tests.worlds.in_memory_pipeline import InMemoryPipeline
from tests.worlds.in_memory_requests import Json

WATERED = "Watered the tomatoes in the greenhouse on day {}, they look healthy."


async def remember_many(pipeline: InMemoryPipeline, count: int, text: str = WATERED, **fields: Any) -> None:
    """Remember `count` nearly equal turns with their vectors."""
    for number in range(count):
        await pipeline.remember(text.format(number), occurred_at=f"2026-02-{number + 1:02}T08:00:00Z", **fields)
    await pipeline.topics.settled()


async def consolidate(pipeline: InMemoryPipeline, mode: str | None = None, **scope: str) -> Json:
    trigger = {"schema": "consolidate.v1", "scope": {"user_id": "u1", **scope}, "mode": mode}
    reply = await pipeline.ask(pipeline.names.consolidate, trigger)
    assert reply["status"] == "ok", reply
    return dict(reply["result"])


def of_origin(pipeline: InMemoryPipeline, origin: str) -> list[Memory]:
    return [memory for memory in pipeline.memories.all() if memory.origin == origin]
