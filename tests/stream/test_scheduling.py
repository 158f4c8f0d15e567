"""Consolidations that nobody asks for: where something new was said, and not too often."""

import asyncio
from datetime import timedelta

from streams.adapters.lexical.sqlite_index import SqliteLexicalIndex
from streams.flow.background.scheduling import ConsolidationScheduler
from tests.worlds.in_memory_pipeline import InMemoryMap

HOUR = timedelta(hours=1)
WATERED = "Watered the tomatoes in the greenhouse on day {}, they look healthy."


async def said(the_map: InMemoryMap, count: int, user: str = "u1") -> None:
    for number in range(count):
        await the_map.remember(WATERED.format(number), user=user)
    await the_map.topics.settled()


async def looked(the_map: InMemoryMap) -> int:
    """How many triggers there are after a look at what is due."""
    _, ctx = the_map.wired(SqliteLexicalIndex(the_map.directory / "unused"))
    await ConsolidationScheduler(HOUR, ctx).look()
    await the_map.topics.settled()
    return len(the_map.topics.records(the_map.names.consolidate))


async def test_a_scope_in_which_enough_was_said_is_consolidated_and_not_again_before_something_is_new(
    the_map: InMemoryMap,
) -> None:
    await said(the_map, 4)
    await said(the_map, 2, user="u2")
    assert await looked(the_map) == 1
    assert len([one for one in the_map.memories.all() if one.origin == "distilled"]) == 1
    the_map.clock.forward(7200)
    assert await looked(the_map) == 1
    await said(the_map, 3)
    assert await looked(the_map) == 2


async def test_a_scope_is_not_consolidated_more_often_than_is_set(the_map: InMemoryMap) -> None:
    await said(the_map, 4)
    assert await looked(the_map) == 1
    await said(the_map, 4)
    assert await looked(the_map) == 1
    the_map.clock.forward(3601)
    assert await looked(the_map) == 2


async def test_it_looks_again_and_again(the_map: InMemoryMap) -> None:
    await said(the_map, 4)
    _, ctx = the_map.wired(SqliteLexicalIndex(the_map.directory / "unused"))
    running = asyncio.create_task(ConsolidationScheduler(timedelta(seconds=0.01), ctx).run())
    await the_map.topics.until(lambda: bool(the_map.topics.records(the_map.names.consolidate)))
    running.cancel()
