"""What is still to be awaited of an event, as one awaitable."""

from collections.abc import Awaitable, Sequence


async def await_all(awaitables: Sequence[Awaitable[object]]) -> None:
    """Wait for each in turn: all of them are under way already."""
    for awaitable in awaitables:
        await awaitable


async def no_writes() -> None:
    """Nothing is left to be awaited."""
