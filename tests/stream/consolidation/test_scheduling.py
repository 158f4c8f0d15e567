"""Scheduled consolidations: after new turns, and not too often."""

import asyncio
from datetime import timedelta

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.background.scheduling import ConsolidationScheduler
from tests.worlds.in_memory_pipeline import InMemoryPipeline

HOUR = timedelta(hours=1)
WATERED = "Watered the tomatoes in the greenhouse on day {}, they look healthy."


async def remember_turns(pipeline: InMemoryPipeline, count: int, user: str = "u1") -> None:
    for number in range(count):
        await pipeline.remember(WATERED.format(number), user=user)
    await pipeline.topics.settled()


async def count_triggers(pipeline: InMemoryPipeline) -> int:
    """Run the scheduler once and count all triggers."""
    _, ctx = pipeline.wire(SqliteLexicalIndex(pipeline.directory / "unused"))
    await ConsolidationScheduler(HOUR, ctx).look()
    await pipeline.topics.settled()
    return len(pipeline.topics.records(pipeline.names.consolidate))


async def test_scope_is_consolidated_when_due_and_again_after_new_turns(pipeline: InMemoryPipeline) -> None:
    await remember_turns(pipeline, 4)
    await remember_turns(pipeline, 2, user="u2")
    assert await count_triggers(pipeline) == 1
    assert len([memory for memory in pipeline.memories.all() if memory.origin == "distilled"]) == 1
    pipeline.clock.forward(7200)
    assert await count_triggers(pipeline) == 1
    await remember_turns(pipeline, 3)
    assert await count_triggers(pipeline) == 2


async def test_scope_is_not_consolidated_more_often_than_is_set(pipeline: InMemoryPipeline) -> None:
    await remember_turns(pipeline, 4)
    assert await count_triggers(pipeline) == 1
    await remember_turns(pipeline, 4)
    assert await count_triggers(pipeline) == 1
    pipeline.clock.forward(3601)
    assert await count_triggers(pipeline) == 2


async def test_trigger_names_the_operator_as_its_principal(pipeline: InMemoryPipeline) -> None:
    await remember_turns(pipeline, 4)
    await count_triggers(pipeline)
    [trigger] = pipeline.topics.records(pipeline.names.consolidate)
    assert trigger.header("principal") == b"operator"


async def test_scheduler_publishes_triggers(pipeline: InMemoryPipeline) -> None:
    await remember_turns(pipeline, 4)
    _, ctx = pipeline.wire(SqliteLexicalIndex(pipeline.directory / "unused"))
    running = asyncio.create_task(ConsolidationScheduler(timedelta(seconds=0.01), ctx).run())
    await pipeline.topics.until(lambda: bool(pipeline.topics.records(pipeline.names.consolidate)))
    running.cancel()
