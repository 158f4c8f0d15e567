"""Single items are handed over in bursts, in order."""

import asyncio
from collections.abc import Sequence

from streams.adapters.kafka.reply_writer import Bursts

FOREVER = 3600.0


class BurstRecorder:
    def __init__(self) -> None:
        self.bursts: list[list[int]] = []
        self.handed_over = asyncio.Event()

    def take(self, burst: Sequence[int]) -> None:
        self.bursts.append(list(burst))
        self.handed_over.set()


async def test_items_after_a_pause_are_handed_over_at_once_in_order() -> None:
    recorder = BurstRecorder()
    bursts = Bursts(recorder.take, FOREVER)
    for number in range(3):
        bursts.add(number)
    await recorder.handed_over.wait()
    assert recorder.bursts == [[0, 1, 2]]


async def test_items_soon_after_a_burst_wait_for_the_next_or_for_flush() -> None:
    recorder = BurstRecorder()
    bursts = Bursts(recorder.take, FOREVER)
    bursts.add(0)
    await recorder.handed_over.wait()
    for number in (1, 2):
        bursts.add(number)
        await asyncio.sleep(0)
    assert recorder.bursts == [[0]]
    bursts.flush()
    assert recorder.bursts == [[0], [1, 2]]
    bursts.flush()
    assert recorder.bursts == [[0], [1, 2]], "nothing is handed over twice, nor an empty burst"


async def test_next_burst_is_handed_over_without_flush() -> None:
    recorder = BurstRecorder()
    bursts = Bursts(recorder.take, 0.001)
    bursts.add(0)
    await recorder.handed_over.wait()
    recorder.handed_over.clear()
    bursts.add(1)
    await asyncio.wait_for(recorder.handed_over.wait(), 10)
    assert recorder.bursts == [[0], [1]]


async def test_an_unhurried_item_waits_longer_and_goes_with_the_next_hurried_one() -> None:
    recorder = BurstRecorder()
    bursts = Bursts(recorder.take, 0.001)
    bursts.add(0)
    await recorder.handed_over.wait()
    recorder.handed_over.clear()
    bursts.add(1, FOREVER)
    await asyncio.sleep(0.01)
    assert recorder.bursts == [[0]], "the interval of an unhurried item is its own"
    bursts.add(2)
    bursts.add(3, FOREVER)
    await asyncio.wait_for(recorder.handed_over.wait(), 10)
    assert recorder.bursts == [[0], [1, 2, 3]], "in order, and no later than a hurried item is due"


async def test_an_unhurried_item_after_a_pause_is_handed_over_at_once() -> None:
    recorder = BurstRecorder()
    bursts = Bursts(recorder.take, 0.001)
    bursts.add(0, FOREVER)
    await asyncio.wait_for(recorder.handed_over.wait(), 10)
    assert recorder.bursts == [[0]]
