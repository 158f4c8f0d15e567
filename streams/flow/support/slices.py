"""Runs work on memories in slices, with other events in between."""

import asyncio
from collections.abc import Callable

from agents.memory.slices import Result, Slices

PLACES_PER_SLICE = 4
"""Places to pause that are passed before other events are handled: four items take some 4 ms."""


async def in_slices(slices: Slices[Result], written: Callable[[], object]) -> Result:
    """Do all slices; return the result. `written` is called after each, before anything else is written."""
    while True:
        try:
            for _ in range(PLACES_PER_SLICE):
                next(slices)
        except StopIteration as end:
            result: Result = end.value
            return result
        finally:
            written()
        await asyncio.sleep(0)
