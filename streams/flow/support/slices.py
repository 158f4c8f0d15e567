"""Runs work on memories in slices, with other events in between: at most half of the event loop's time is its own."""

import asyncio

from agents.memory.slices import Result, Slices
from streams.foreground import Foreground

PLACES_PER_SLICE = 4
"""Places to pause that are passed before other events are handled: four items take some 4 ms."""


async def in_slices(slices: Slices[Result], foreground: Foreground | None = None) -> Result:
    """Do all slices; return the result.

    While requests are expected in the foreground, slices are as short as they can be, and give way to them.
    """
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        is_expected = foreground is not None and foreground.is_expected
        try:
            for _ in range(1 if is_expected else PLACES_PER_SLICE):
                next(slices)
        except StopIteration as end:
            result: Result = end.value
            return result
        worked_s = loop.time() - began
        await asyncio.sleep(worked_s)
        if foreground is not None and is_expected:
            await foreground.give_way(worked_s)
