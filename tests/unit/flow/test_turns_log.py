"""Turns before a forgetting command are applied before it."""

import asyncio

import pytest

from streams.flow import turns_log
from streams.flow.turns_log import TakenTurns, wait_until_applied
from streams.partition.commit import AppliedOffsets
from tests.fakes.turns_log import HERE, FakeTurnsLog


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_log, "CATCH_UP_POLL_INTERVAL_S", 0.001)


async def test_it_waits_until_the_last_turn_is_applied() -> None:
    progress, log = AppliedOffsets(), FakeTurnsLog(3, 3)
    waiting = asyncio.create_task(wait_until_applied(log, progress, HERE, 3, "u1"))
    progress.start(HERE, 2)
    async with asyncio.timeout(5):
        while log.asked < 3:
            await asyncio.sleep(0)
    assert not waiting.done()
    progress.start(HERE, 3)
    await waiting


async def test_fully_applied_log_needs_no_wait() -> None:
    progress, log = AppliedOffsets(), FakeTurnsLog(3, 3)
    progress.start(HERE, 3)
    await wait_until_applied(log, progress, HERE, 3, "u1")
    await wait_until_applied(log, progress, HERE + 1, 0, "u1")
    assert log.asked <= 2


async def test_places_without_a_record_are_not_waited_for() -> None:
    progress, log = AppliedOffsets(), FakeTurnsLog(4, 3)
    progress.start(HERE, 3)
    await wait_until_applied(log, progress, HERE, 4, "u1")
    assert log.asked == 1


async def test_turns_of_a_partition_that_was_taken_are_waited_for() -> None:
    progress, log = AppliedOffsets(), FakeTurnsLog(3, 3)
    progress.start(HERE, 2)
    waiting = asyncio.create_task(TakenTurns(log, progress).applied(HERE, "u1", 5))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    progress.arrive(HERE, 2, "u1")
    progress.finish(HERE, 2)
    await waiting


async def test_a_turn_that_can_not_be_applied_is_waited_for_that_long() -> None:
    progress = AppliedOffsets()
    progress.start(HERE, 2)
    async with asyncio.timeout(5):
        await TakenTurns(FakeTurnsLog(3, 3), progress).applied(HERE, "u1", 0.01)


async def test_turns_that_are_written_later_are_not_waited_for() -> None:
    progress, log = AppliedOffsets(), FakeTurnsLog(3, 3)
    taken = TakenTurns(log, progress)
    progress.start(HERE, 3)
    await taken.applied(HERE, "u1", 5)
    log.ends = log.given = 4
    await asyncio.wait_for(taken.applied(HERE, "u1", 60), 5)
