"""Turns before a forgetting command are applied before it."""

import asyncio

import pytest

from streams.flow.support import turns_log
from streams.flow.support.progress import AppliedOffsets
from streams.flow.support.turns_log import wait_until_applied


class Log:
    """A log that ends at `ends` and is delivered up to `given`."""

    def __init__(self, ends: int, delivered: int) -> None:
        self.ends, self.given, self.asked = ends, delivered, 0

    async def end(self, partition: int) -> int:
        """Return the end of any partition."""
        return self.ends + 0 * partition

    async def end_with_transactions(self, partition: int) -> int:
        """Return the end of any partition: there are no transactions."""
        return await self.end(partition)

    def is_assigned(self, partition: int) -> bool:
        """Return True for one partition."""
        return partition == 0

    async def is_delivered(self, partition: int, end: int, applied: int) -> bool:
        """True if all delivered records up to `end` are applied."""
        self.asked += 1
        return partition == 0 and end <= self.ends and self.given <= applied


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_log, "CATCH_UP_POLL_INTERVAL_S", 0.001)


async def test_it_waits_until_the_last_turn_is_applied() -> None:
    progress, log = AppliedOffsets(), Log(3, 3)
    waiting = asyncio.create_task(wait_until_applied(log, progress, 0, 3, "u1"))
    progress.start(0, 2)
    async with asyncio.timeout(5):
        while log.asked < 3:
            await asyncio.sleep(0)
    assert not waiting.done()
    progress.start(0, 3)
    await waiting


async def test_fully_applied_log_needs_no_wait() -> None:
    progress, log = AppliedOffsets(), Log(3, 3)
    progress.start(0, 3)
    await wait_until_applied(log, progress, 0, 3, "u1")
    await wait_until_applied(log, progress, 1, 0, "u1")
    assert log.asked <= 2


async def test_places_without_a_record_are_not_waited_for() -> None:
    progress, log = AppliedOffsets(), Log(4, 3)
    progress.start(0, 3)
    await wait_until_applied(log, progress, 0, 4, "u1")
    assert log.asked == 1
