"""Bounded concurrency: work through a list, some at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

One = TypeVar("One")


async def at_most(number: int, every: Iterable[One], work: Callable[[One], Awaitable[None]]) -> None:
    """Call `work` for each, at most `number` at the same time. The first error ends all, and is raised."""
    waiting = iter(every)

    async def go_on() -> None:
        for one in waiting:
            await work(one)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(number):
                group.create_task(go_on())
    except BaseExceptionGroup as problems:
        raise problems.exceptions[0] from None
