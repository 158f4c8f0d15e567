"""Work in slices: how much is done at a stretch, with and without requests."""

import asyncio
from collections.abc import Generator

from streams.flow.steps.remember import PLACES_PER_SLICE, in_slices
from streams.foreground import Foreground


def work(done: list[int], places: int) -> Generator[None, None, str]:
    for number in range(places):
        done.append(number)
        yield
    return "all"


async def test_some_places_are_passed_at_a_stretch() -> None:
    done: list[int] = []
    running = asyncio.create_task(in_slices(work(done, 10)))
    await asyncio.sleep(0)
    assert len(done) == PLACES_PER_SLICE
    assert await running == "all"


async def test_slices_are_short_while_requests_are_under_way_and_wait_for_them() -> None:
    foreground, done = Foreground(), list[int]()
    request = foreground.enter()
    running = asyncio.create_task(in_slices(work(done, 3), foreground))
    await asyncio.sleep(0)
    assert len(done) == 1
    assert await running == "all", "a backlog keeps a share of the time"
    request.leave()
