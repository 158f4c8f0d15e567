"""Offsets that were never given are known at once, for one request to the broker."""

import asyncio

import pytest

from schemas.failures import Unavailable
from streams.flow.requests.channel import ReplyOptions
from streams.flow.steps.answer import OwnWrites
from streams.flow.turns_log import LogEnds
from streams.foreground import Foreground
from streams.partition.commit import AppliedOffsets
from tests.fakes.clock import FakeClock


class GrowingLog:
    """A log whose end is `ends`; answers after a moment."""

    def __init__(self, end: int) -> None:
        self.ends, self.asked, self.is_away = end, 0, False

    async def end(self, _partition: int) -> int:
        self.asked += 1
        found = self.ends
        await asyncio.sleep(0.005)
        if self.is_away:
            raise Unavailable("away")
        return found

    async def end_with_transactions(self, partition: int) -> int:
        return await self.end(partition)

    def is_assigned(self, _partition: int) -> bool:
        return True

    async def is_delivered(self, _partition: int, _end: int, _applied: int) -> bool:
        return True


@pytest.fixture
def log() -> GrowingLog:
    return GrowingLog(10)


async def test_many_calls_share_a_request(log: GrowingLog) -> None:
    ends = LogEnds(log)
    assert await asyncio.gather(*(ends.is_beyond(0, 10**15) for _ in range(50))) == [True] * 50
    # Those that were called after the first request began share a second one.
    assert (asked := log.asked) <= 2
    assert not await ends.is_beyond(0, 9)
    assert log.asked == asked


async def test_offset_that_was_given_after_a_request_began_is_not_beyond(log: GrowingLog) -> None:
    ends = LogEnds(log)
    early = asyncio.create_task(ends.is_beyond(0, 10**15))
    await asyncio.sleep(0.001)
    log.ends = 11
    assert not await ends.is_beyond(0, 10)
    assert await early


async def test_without_an_answer_nothing_is_beyond(log: GrowingLog) -> None:
    log.is_away = True
    assert not await LogEnds(log).is_beyond(0, 10**15)


async def test_request_for_an_offset_that_was_never_given_does_not_wait(log: GrowingLog) -> None:
    progress = AppliedOffsets()
    progress.start(0, 10)
    writes = OwnWrites(progress, FakeClock(), Foreground(), LogEnds(log))
    began = asyncio.get_running_loop().time()
    [late] = await writes.wait(10**15, 0, "u1", ReplyOptions())
    assert late.code == "not_caught_up"
    assert asyncio.get_running_loop().time() - began < 2.5
    assert await writes.wait(9, 0, "u1", ReplyOptions()) == ()


async def test_request_that_waits_for_its_callers_writes_does_not_hold_them_up(log: GrowingLog) -> None:
    progress, foreground = AppliedOffsets(), Foreground()
    progress.start(0, 10)
    progress.arrive(0, 10, "u1")
    writes = OwnWrites(progress, FakeClock(), foreground, LogEnds(log))
    request = foreground.enter()
    with foreground.handling(request):
        waiting = asyncio.create_task(writes.wait(10, 0, "u1", ReplyOptions()))
    await asyncio.sleep(0.001)
    assert foreground.slice_s > 0
    progress.finish(0, 10)
    assert await waiting == ()
    assert foreground.slice_s == 0
    request.leave()
