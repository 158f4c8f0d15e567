"""Single items are handed over in bursts, in order."""

import asyncio
from collections.abc import Sequence

from streams.runtime.bursts import Bursts

FOREVER = 3600.0


class Taker:
    """Records bursts."""

    def __init__(self) -> None:
        self.bursts: list[list[int]] = []
        self.came = asyncio.Event()

    def take(self, burst: Sequence[int]) -> None:
        self.bursts.append(list(burst))
        self.came.set()


async def test_items_after_a_pause_are_handed_over_at_once_in_order() -> None:
    taker = Taker()
    bursts = Bursts(taker.take, FOREVER)
    for number in range(3):
        bursts.add(number)
    await taker.came.wait()
    assert taker.bursts == [[0, 1, 2]]


async def test_items_soon_after_a_burst_wait_for_the_next_or_for_flush() -> None:
    taker = Taker()
    bursts = Bursts(taker.take, FOREVER)
    bursts.add(0)
    await taker.came.wait()
    for number in (1, 2):
        bursts.add(number)
        await asyncio.sleep(0)
    assert taker.bursts == [[0]]
    bursts.flush()
    assert taker.bursts == [[0], [1, 2]]
    bursts.flush()
    assert taker.bursts == [[0], [1, 2]], "nothing is handed over twice, nor an empty burst"


async def test_next_burst_is_handed_over_without_flush() -> None:
    taker = Taker()
    bursts = Bursts(taker.take, 0.001)
    bursts.add(0)
    await taker.came.wait()
    taker.came.clear()
    bursts.add(1)
    await asyncio.wait_for(taker.came.wait(), 10)
    assert taker.bursts == [[0], [1]]
