"""Delivery with users that take turns: order within a user, acknowledgement in the order of the log."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from schemas.messages.records import Record
from streams.fair_queue import FairShare
from streams.foreground import Foreground
from streams.runtime.delivery import MAX_HELD_BYTES, Delivery
from tests.builders.turns import record
from tests.harnesses.delivery import quiet
from tests.properties import scaled


class Event:
    """One event of a user; lists get the offsets that were acknowledged and left."""

    def __init__(self, taken: Record, run: "FairRun") -> None:
        self.record = taken
        self._run = run

    def settle(self) -> None:
        self._run.settled.append(self.record.offset)

    def leave(self) -> None:
        self._run.left.append(self.record.offset)


class FairRun:
    """A delivery over events of the given users; each begins when `go` admits it and ends when `finish` says so."""

    def __init__(self, users: str, at_once: int = 1, *, values: bytes = b"{}") -> None:
        self.users = users
        self.read: list[int] = []
        self.begun: list[int] = []
        self.settled: list[int] = []
        self.left: list[int] = []
        self.finishing = [asyncio.get_running_loop().create_future() for _ in users]
        self.go = asyncio.Event()
        self._values = values
        share = self._share(at_once)
        self.delivery = self._new_delivery(share)
        self.task = asyncio.create_task(self.delivery.run(self._stream()))

    def _new_delivery(self, share: FairShare) -> Delivery[int]:
        return Delivery(self._begin, self._settle, window=100, fair_share=share)

    def _share(self, at_once: int) -> FairShare:
        return FairShare(self._key_of, at_once=at_once)

    def _value(self, _offset: int) -> bytes:
        return self._values

    def _key_of(self, taken: Record) -> str:
        self.read.append(taken.offset)
        return self.users[taken.offset]

    async def _stream(self) -> AsyncIterator[Event]:
        for offset in range(len(self.users)):
            yield Event(record(self._value(offset), offset=offset), self)

    async def _begin(self, taken: Record) -> Awaitable[int]:
        self.begun.append(taken.offset)
        await self.go.wait()
        return self.finishing[taken.offset]

    async def _settle(self, finished: Sequence[int]) -> None:
        """Do nothing."""

    async def begun_when(self, count: int) -> list[int]:
        """Return what has begun once so many events have, and those that could follow them at once."""
        async with asyncio.timeout(10):
            while len(self.begun) < count:
                # An event gives way to others for as long as it took by the clock: passes of the loop don't measure it.
                await asyncio.sleep(0.001)
        await quiet()
        return self.begun


async def test_users_take_turns() -> None:
    run = FairRun("aaaabab")
    run.go.set()
    assert await run.begun_when(7) == [0, 4, 1, 6, 2, 3, 5]
    for future in run.finishing:
        future.set_result(0)
    await run.task
    assert run.settled == list(range(7))


@settings(max_examples=scaled(60))
@given(users=some.text("abc", max_size=14), at_once=some.integers(1, 3), data=some.data())
def test_order_within_a_user_and_of_acknowledgements(users: str, at_once: int, data: some.DataObject) -> None:
    async def scenario() -> None:
        run = FairRun(users, at_once)
        run.go.set()
        await quiet()
        for offset in data.draw(some.permutations(range(len(users)))):
            run.finishing[offset].set_result(offset)
            await quiet()
            assert run.settled == list(range(len(run.settled)))
        await run.task
        assert run.settled == list(range(len(users)))
        for user in set(users):
            own = [offset for offset in run.begun if users[offset] == user]
            assert own == sorted(own)

    asyncio.run(scenario())


async def test_one_that_waits_in_begin_holds_up_its_own_user_alone() -> None:
    run = FairRun("aab", at_once=2)
    assert await run.begun_when(2) == [0, 2]
    run.go.set()
    assert await run.begun_when(3) == [0, 2, 1]
    run.task.cancel()
    await asyncio.wait([run.task])


async def test_all_is_read_while_one_begins() -> None:
    run = FairRun("a" * 50)
    await quiet()
    assert len(run.read) == 50
    assert run.begun == [0]
    run.task.cancel()
    await asyncio.wait([run.task])


async def test_what_is_left_is_not_acknowledged_nor_what_came_after_it() -> None:
    run = FairRun("aaab", at_once=2)
    assert await run.begun_when(2) == [0, 3]
    run.delivery.leave_waiting()
    assert sorted(run.left) == [1, 2]
    run.go.set()
    for future in run.finishing:
        future.set_result(0)
    await run.task
    assert run.settled == [0]
    assert sorted(run.left) == [1, 2, 3]
    assert run.begun == [0, 3]


async def test_nothing_that_was_read_begins_after_what_was_left() -> None:
    """Its acknowledgement would be one of those that were left: they would not be delivered again."""
    run = FullRun("aabbc")
    await quiet()
    run.delivery.leave_waiting()
    run.go.set()
    for future in run.finishing:
        future.set_result(0)
    await quiet()
    assert run.settled == [0]
    assert run.begun == [0]
    assert sorted(run.left) == [1, 2]
    assert run.taken == 3
    run.task.cancel()
    await asyncio.wait([run.task])


class FullRun(FairRun):
    """A run with three events in flight at most, whose stream ends where it was left."""

    taken = 0

    def _new_delivery(self, share: FairShare) -> Delivery[int]:
        return Delivery(self._begin, self._settle, window=3, fair_share=share)

    async def _stream(self) -> AsyncIterator[Event]:
        async for event in super()._stream():
            if self.left:
                await asyncio.Event().wait()
            self.taken += 1
            yield event


async def test_large_events_are_not_all_held() -> None:
    run = FairRun("a" * 9, values=b"x" * (MAX_HELD_BYTES // 4))
    await quiet()
    assert len(run.read) == 5
    run.go.set()
    for future in run.finishing:
        future.set_result(0)
    await run.task
    assert run.settled == list(range(9))


class SizedRun(FairRun):
    """A run in which users with a capital letter send large records."""

    def _share(self, at_once: int) -> FairShare:
        return FairShare(self._key_of, at_once=at_once, large_bytes=2)

    def _value(self, offset: int) -> bytes:
        return b"large" if self.users[offset].isupper() else b"{}"


async def test_large_ones_begin_one_at_a_time_and_hold_up_no_others() -> None:
    run = SizedRun("ABCDab", at_once=3)
    assert await run.begun_when(3) == [0, 4, 5]
    run.go.set()
    assert await run.begun_when(6) == [0, 4, 5, 1, 2, 3]
    for future in run.finishing:
        future.set_result(0)
    await run.task
    assert run.settled == list(range(6))


async def test_failure_ends_the_run() -> None:
    run = FairRun("ab")
    run.go.set()
    await quiet()
    run.finishing[1].set_exception(ValueError("a defect"))
    run.finishing[0].set_result(0)
    with pytest.raises(ExceptionGroup):
        await run.task
    assert 1 not in run.settled


async def test_backlog_gives_way_to_the_request_of_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    # However slow the machine is: no wait ends by the clock here.
    monkeypatch.setattr("streams.runtime.delivery.MAX_WAIT_SHARE", 10_000)
    for limit in ("MAX_PAUSE_S", "MAX_REQUEST_S"):
        monkeypatch.setattr(f"streams.foreground.{limit}", 60.0)
    foreground = Foreground()
    run = BacklogRun("aaab", foreground)
    run.go.set()
    request = foreground.enter()
    assert await run.begun_when(3) == [0, 3, 1], "after one event of the backlog the next waits for what is under way"
    request.leave()
    for offset in (0, 3):
        run.finishing[offset].set_result(offset)
    assert await run.begun_when(4) == [0, 3, 1, 2]
    run.task.cancel()
    await asyncio.wait([run.task])


async def test_users_whose_events_begin_at_once_share_one_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("LULL_S", "MAX_REQUEST_S"):
        monkeypatch.setattr(f"streams.foreground.{limit}", 0.0)
    run = BacklogRun("abcd" * 12, Foreground(), at_once=4)
    run.go.set()
    passes: list[int] = []
    while sum(passes) < len(run.users):
        await asyncio.sleep(0)
        passes.append(len(run.begun) - sum(passes))
    # A slice is four events. All four users have one each as their first requests end, and none after that.
    assert sum(begun for begun in passes if begun > 4) <= 20
    run.task.cancel()
    await asyncio.wait([run.task])


async def test_backlog_goes_on_under_endless_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.foreground.MAX_REQUEST_S", 60.0)
    foreground = Foreground()
    request = foreground.enter()
    run = BacklogRun("aaaa", foreground)
    run.go.set()
    async with asyncio.timeout(5):
        while len(run.begun) < 4:
            await asyncio.sleep(0.01)
    run.task.cancel()
    await asyncio.wait([run.task])
    request.leave()


class BacklogRun(FairRun):
    """A delivery whose `begin` takes 5 ms."""

    def __init__(self, users: str, foreground: Foreground, at_once: int = 1) -> None:
        self._foreground = foreground
        super().__init__(users, at_once)

    def _new_delivery(self, share: FairShare) -> Delivery[int]:
        return Delivery(self._begin, self._settle, window=100, fair_share=share, foreground=self._foreground)

    async def _begin(self, taken: Record) -> Awaitable[int]:
        time.sleep(0.005)  # noqa: ASYNC251 - as code on the event loop does
        return await super()._begin(taken)
