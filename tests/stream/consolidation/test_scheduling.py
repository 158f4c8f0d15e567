"""Scheduled consolidations: where new turns came, and not too often."""

import asyncio
from datetime import timedelta

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.background.scheduling import ConsolidationScheduler
from tests.worlds.in_memory_pipeline import InMemoryPipeline

HOUR = timedelta(hours=1)
WATERED = "Watered the tomatoes in the greenhouse on day {}, they look healthy."


async def said(pipeline: InMemoryPipeline, count: int, user: str = "u1") -> None:
    for number in range(count):
        await pipeline.remember(WATERED.format(number), user=user)
    await pipeline.topics.settled()


async def looked(pipeline: InMemoryPipeline) -> int:
    """How many triggers there are after a look at what is due."""
    _, ctx = pipeline.wired(SqliteLexicalIndex(pipeline.directory / "unused"))
    await ConsolidationScheduler(HOUR, ctx).look()
    await pipeline.topics.settled()
    return len(pipeline.topics.records(pipeline.names.consolidate))


async def test_scope_is_consolidated_when_due_and_again_after_new_turns(pipeline: InMemoryPipeline) -> None:
    await said(pipeline, 4)
    await said(pipeline, 2, user="u2")
    assert await looked(pipeline) == 1
    assert len([one for one in pipeline.memories.all() if one.origin == "distilled"]) == 1
    pipeline.clock.forward(7200)
    assert await looked(pipeline) == 1
    await said(pipeline, 3)
    assert await looked(pipeline) == 2


async def test_a_scope_is_not_consolidated_more_often_than_is_set(pipeline: InMemoryPipeline) -> None:
    await said(pipeline, 4)
    assert await looked(pipeline) == 1
    await said(pipeline, 4)
    assert await looked(pipeline) == 1
    pipeline.clock.forward(3601)
    assert await looked(pipeline) == 2


async def test_it_looks_again_and_again(pipeline: InMemoryPipeline) -> None:
    await said(pipeline, 4)
    _, ctx = pipeline.wired(SqliteLexicalIndex(pipeline.directory / "unused"))
    running = asyncio.create_task(ConsolidationScheduler(timedelta(seconds=0.01), ctx).run())
    await pipeline.topics.until(lambda: bool(pipeline.topics.records(pipeline.names.consolidate)))
    running.cancel()
