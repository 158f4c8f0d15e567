"""Applied offsets and waits for them."""

import asyncio

from streams.flow.support.progress import AppliedOffsets


async def waiting(progress: AppliedOffsets, partition: int, offset: int, within: float = 60) -> asyncio.Task[bool]:
    """Start a waiter."""
    task = asyncio.create_task(progress.reached(partition, offset, within))
    await asyncio.sleep(0)
    return task


async def test_what_is_applied_is_reached_at_once() -> None:
    progress = AppliedOffsets()
    progress.advance(1, 5)
    assert await progress.reached(1, 4, 0)


async def test_the_next_offset_is_not_reached_yet() -> None:
    progress = AppliedOffsets()
    progress.advance(1, 5)
    assert not await progress.reached(1, 5, 0)


async def test_everybody_is_woken_by_what_they_wait_for_and_nobody_before() -> None:
    progress = AppliedOffsets()
    near, nearer, far = [await waiting(progress, 1, offset) for offset in (4, 4, 6)]
    progress.advance(1, 5)
    assert await near
    assert await nearer
    assert not far.done()
    progress.advance(1, 7)
    assert await far


async def test_another_partitions_progress_wakes_nobody() -> None:
    progress = AppliedOffsets()
    one = await waiting(progress, 1, 0)
    progress.advance(2, 100)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not one.done()
    one.cancel()


async def test_who_waits_too_long_is_told_so() -> None:
    assert not await AppliedOffsets().reached(1, 0, 0.001)


async def test_progress_never_goes_back() -> None:
    progress = AppliedOffsets()
    progress.advance(1, 9)
    progress.advance(1, 3)
    assert progress.next_offset(1) == 9


async def test_an_offset_of_400_digits_is_waited_for_like_any_other() -> None:
    progress = AppliedOffsets()
    progress.advance(0, 1)
    assert not await progress.reached(0, 10**400, 0)
