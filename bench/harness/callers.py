"""Several callers at once, each of which waits for its answer before it asks for the next one."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

Asked = TypeVar("Asked")


async def answer_seconds(
    ask: Callable[[Asked], Awaitable[object]], asked: Iterable[Asked], callers: int
) -> list[float]:
    """Ask everything once; return the seconds of each answer, in the order in which they came."""
    left, seconds = iter(asked), list[float]()

    async def call() -> None:
        for one in left:
            began = time.perf_counter()
            await ask(one)
            seconds.append(time.perf_counter() - began)

    await asyncio.gather(*(call() for _ in range(callers)))
    return seconds
