"""Combine the pending writes of an event into one awaitable."""

from collections.abc import Awaitable, Sequence


async def await_all(awaitables: Sequence[Awaitable[object]]) -> None:
    """Wait for each in turn: all of them run already."""
    for awaitable in awaitables:
        await awaitable


async def no_writes() -> None:
    """Do nothing: there is nothing to await."""
