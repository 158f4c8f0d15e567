"""Turns before a forgetting command are applied before it."""

import asyncio

import pytest

from streams.flow import turns_log
from streams.flow.turns_log import wait_until_applied
from streams.partition.progress import AppliedOffsets
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
