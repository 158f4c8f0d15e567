"""Applied offsets and waits for them."""

import asyncio

from streams.flow.support.progress import AppliedOffsets


async def waiting(progress: AppliedOffsets, partition: int, offset: int, within: float = 60) -> asyncio.Task[bool]:
    """Start a waiter."""
    task = asyncio.create_task(progress.reached(partition, offset, within))
    await asyncio.sleep(0)
    return task


async def test_applied_offset_is_reached_at_once() -> None:
    progress = AppliedOffsets()
    progress.advance(1, 5)
    assert await progress.reached(1, 4, 0)


async def test_next_offset_is_not_reached_yet() -> None:
    progress = AppliedOffsets()
    progress.advance(1, 5)
    assert not await progress.reached(1, 5, 0)


async def test_waiters_wake_exactly_at_their_offset() -> None:
    progress = AppliedOffsets()
    near, nearer, far = [await waiting(progress, 1, offset) for offset in (4, 4, 6)]
    progress.advance(1, 5)
    assert await near
    assert await nearer
    assert not far.done()
    progress.advance(1, 7)
    assert await far


async def test_progress_of_another_partition_wakes_no_waiter() -> None:
    progress = AppliedOffsets()
    one = await waiting(progress, 1, 0)
    progress.advance(2, 100)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not one.done()
    one.cancel()


async def test_wait_beyond_its_limit_returns_false() -> None:
    assert not await AppliedOffsets().reached(1, 0, 0.001)


async def test_progress_never_decreases() -> None:
    progress = AppliedOffsets()
    progress.advance(1, 9)
    progress.advance(1, 3)
    assert progress.next_offset(1) == 9


async def test_offset_of_400_digits_is_valid() -> None:
    progress = AppliedOffsets()
    progress.advance(0, 1)
    assert not await progress.reached(0, 10**400, 0)
