"""Runs work on memories in slices, with other events in between: at most half of the event loop's time is its own."""

import asyncio
from collections.abc import Callable

from agents.memory.slices import Result, Slices

PLACES_PER_SLICE = 4
"""Places to pause that are passed before other events are handled: four items take some 4 ms."""


async def in_slices(slices: Slices[Result], written: Callable[[], object]) -> Result:
    """Do all slices; return the result. `written` is called after each, before anything else is written."""
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        try:
            for _ in range(PLACES_PER_SLICE):
                next(slices)
        except StopIteration as end:
            result: Result = end.value
            return result
        finally:
            written()
        await asyncio.sleep(loop.time() - began)
