import asyncio

from streams.partition.commit import AppliedOffsets


async def waiting(progress: AppliedOffsets, partition: int, offset: int, within: float = 60) -> asyncio.Task[bool]:
    task = asyncio.create_task(progress.reached(partition, offset, within))
    await asyncio.sleep(0)
    return task


async def test_applied_offset_is_reached_at_once() -> None:
    progress = AppliedOffsets()
    progress.start(1, 5)
    assert await progress.reached(1, 4, 0)


async def test_next_offset_is_not_reached_yet() -> None:
    progress = AppliedOffsets()
    progress.start(1, 5)
    assert not await progress.reached(1, 5, 0)


async def test_waiters_wake_exactly_at_their_offset() -> None:
    progress = AppliedOffsets()
    near, nearer, far = [await waiting(progress, 1, offset) for offset in (4, 4, 6)]
    progress.start(1, 5)
    assert await near
    assert await nearer
    assert not far.done()
    progress.start(1, 7)
    assert await far


async def test_progress_of_another_partition_wakes_no_waiter() -> None:
    progress = AppliedOffsets()
    waiter = await waiting(progress, 1, 0)
    progress.start(2, 100)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiter.done()
    waiter.cancel()


async def test_wait_beyond_its_limit_returns_false() -> None:
    assert not await AppliedOffsets().reached(1, 0, 0.001)


async def test_turns_of_a_user_are_applied_while_earlier_ones_of_another_wait() -> None:
    progress = AppliedOffsets()
    progress.start(0, 10)
    for offset, user in enumerate(["alice", "alice", "bob"], start=10):
        progress.arrive(0, offset, user)
    progress.finish(0, 12)
    assert await progress.reached(0, 12, 0, "bob")
    assert not await progress.reached(0, 10, 0, "alice")
    assert progress.next_offset(0) == 10
    assert progress.next_offset(0, "alice") == 10
    assert progress.next_offset(0, "bob") == 13


async def test_next_offset_is_that_of_the_first_waiting_turn() -> None:
    progress = AppliedOffsets()
    progress.start(0, 10)
    for offset, user in enumerate(["alice", "bob", "alice", "bob"], start=10):
        progress.arrive(0, offset, user)
    progress.finish(0, 11)
    assert progress.next_offset(0) == 10
    progress.finish(0, 10)
    assert progress.next_offset(0) == 12
    progress.finish(0, 13)
    progress.finish(0, 12)
    assert progress.next_offset(0) == 14


async def test_offset_that_is_not_read_is_not_applied_for_any_user() -> None:
    progress = AppliedOffsets()
    progress.start(0, 10)
    assert not await progress.reached(0, 10, 0, "bob")


async def test_waiter_of_a_user_wakes_at_the_users_own_turn() -> None:
    progress = AppliedOffsets()
    progress.start(0, 0)
    progress.arrive(0, 0, "alice")
    progress.arrive(0, 1, "bob")
    task = asyncio.create_task(progress.reached(0, 1, 60, "bob"))
    await asyncio.sleep(0)
    progress.finish(0, 1)
    assert await task


async def test_turns_that_are_read_again_wait_again() -> None:
    progress = AppliedOffsets()
    progress.start(0, 0)
    for offset, user in enumerate(["alice", "bob", "alice"]):
        progress.arrive(0, offset, user)
    progress.finish(0, 1)
    progress.arrive(0, 0, "alice")
    assert progress.next_offset(0, "bob") == 1
    assert not await progress.reached(0, 1, 0, "bob")
    progress.finish(0, 0)
    assert progress.next_offset(0) == 1


async def test_a_new_start_forgets_what_waited() -> None:
    progress = AppliedOffsets()
    progress.start(0, 0)
    progress.arrive(0, 0, "alice")
    progress.start(0, 7)
    assert await progress.reached(0, 6, 0, "alice")


async def test_offset_of_400_digits_is_valid() -> None:
    progress = AppliedOffsets()
    progress.start(0, 1)
    assert not await progress.reached(0, 10**400, 0)
