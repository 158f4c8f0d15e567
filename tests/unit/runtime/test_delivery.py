"""At-least-once delivery in order, under any order of completion and any failure."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from schemas.messages.records import Record
from streams.runtime.delivery import LOOK_INTERVAL_S, Delivery
from tests.harnesses.delivery import Event, Run, quiet
from tests.properties import scaled


@settings(max_examples=scaled(60))
@given(order=some.integers(0, 12).flatmap(lambda events: some.permutations(range(events))), window=some.integers(1, 13))
def test_events_are_settled_once_in_order_of_arrival(order: list[int], window: int) -> None:
    async def scenario() -> None:
        run = Run(len(order), window)
        for offset in order:
            await run.finish(offset)
            assert run.settled == list(range(len(run.settled)))
        await run.task
        assert run.begun == run.settled == [each for batch in run.batches for each in batch] == sorted(order)
        assert all(run.batches)

    asyncio.run(scenario())


@settings(max_examples=scaled(60))
@given(order=some.integers(1, 12).flatmap(lambda events: some.permutations(range(events))), data=some.data())
def test_no_event_after_a_failure_is_settled(order: list[int], data: some.DataObject) -> None:
    bad = data.draw(some.sampled_from(order))

    async def scenario() -> None:
        run = Run(len(order))
        await quiet()
        for offset in order:
            if offset == bad:
                run.finishing[offset].set_exception(ValueError("a defect"))
                await quiet()
            elif not run.finishing[offset].done():
                await run.finish(offset)
        assert isinstance(await run.failure(), ValueError)
        assert run.settled == list(range(len(run.settled)))
        assert len(run.settled) <= bad

    asyncio.run(scenario())


async def test_events_begin_in_order_without_waiting_for_each_other() -> None:
    run = Run(5)
    await quiet()
    assert run.begun == [0, 1, 2, 3, 4]
    assert run.settled == []
    await run.finish(0, 1, 2, 3, 4)
    await run.task


async def test_slow_begin_delays_the_next_one() -> None:
    run = Run(2)
    gate = asyncio.Event()

    async def slowly(_: int) -> None:
        await gate.wait()

    run.before_begin = slowly
    await quiet()
    assert run.begun == []
    gate.set()
    await quiet()
    assert run.begun == [0, 1]
    await run.finish(0, 1)
    await run.task


async def test_events_in_flight_are_limited_by_the_window() -> None:
    run = Run(6, window=2)
    await quiet()
    assert run.begun == [0, 1]
    await run.finish(1)
    assert run.begun == [0, 1], "the oldest one holds its place, and those behind it theirs"
    await run.finish(0)
    assert run.begun == [0, 1, 2, 3]
    await run.finish(2, 3, 4, 5)
    await run.task
    assert run.settled == [0, 1, 2, 3, 4, 5]


async def test_events_that_finish_during_a_settle_share_the_next_one() -> None:
    run = Run(5)
    gate = asyncio.Event()

    async def slowly(_: list[int]) -> None:
        await gate.wait()

    run.before_settle = slowly
    await quiet()
    await run.finish(0)
    await run.finish(1, 2, 4)
    assert run.settled == [], "no acknowledgement before the effects are durable"
    gate.set()
    await quiet()
    assert run.batches == [[0], [1, 2]]
    await run.finish(3)
    await run.task
    assert run.batches == [[0], [1, 2], [3, 4]]


async def test_no_settle_takes_all_of_the_window() -> None:
    run = Run(16, window=8)
    await quiet()
    begun: list[int] = []

    async def note(_: list[int]) -> None:
        begun.append(len(run.begun))
        await quiet()

    run.before_settle = note
    await run.finish(*range(8))
    while len(run.settled) < 8:
        await asyncio.sleep(0)
    assert run.batches == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert begun == [8, 10, 12, 14], "others begin while the rest is settled"
    await run.finish(*range(8, 16))
    await run.task


async def test_single_event_is_settled_at_once() -> None:
    run = Run(1, endless=True)
    await run.finish(0)
    assert run.settled == [0]
    run.task.cancel()


@pytest.mark.parametrize(
    ("events", "window", "early", "last", "settled"),
    [
        pytest.param(8, 8, (1, 3), 2, [1, 2], id="as many have finished in order as are settled at once"),
        pytest.param(4, 100, (1, 2), 3, [1, 2, 3], id="nothing is under way"),
    ],
)
async def test_a_pause_ends_when(
    events: int, window: int, early: tuple[int, int], last: int, settled: list[int]
) -> None:
    run = Run(events, window, endless=True, pause_s=60)
    await quiet()
    await run.finish(0)
    await run.finish(*early)
    await asyncio.sleep(4 * LOOK_INTERVAL_S)
    assert run.batches == [[0]], "what is under way does not end the pause"
    await run.finish(last)
    await run.until_settled(1 + len(settled))
    assert run.batches == [[0], settled]
    run.task.cancel()


async def test_failed_begin_ends_the_run() -> None:
    run = Run(3)

    async def failing(offset: int) -> None:
        if offset == 1:
            raise ValueError("a defect")

    run.before_begin = failing
    assert isinstance(await run.failure(), ValueError)
    assert run.begun == [0]
    assert run.settled == []
    assert run.finishing[0].cancelled()


async def test_failed_settle_acknowledges_nothing_and_ends_the_run() -> None:
    run = Run(3)

    async def failing(offsets: list[int]) -> None:
        if 1 in offsets:
            raise ValueError("a defect")

    run.before_settle = failing
    await quiet()
    await run.finish(0)
    await run.finish(1)
    assert isinstance(await run.failure(), ValueError)
    assert run.settled == [0]


async def test_cancelled_event_ends_the_run() -> None:
    run = Run(3)
    await quiet()
    run.finishing[0].cancel()
    async with asyncio.timeout(5):
        assert isinstance(await run.failure(), RuntimeError)
    assert run.settled == []


async def test_failed_stream_ends_the_run() -> None:
    settled: list[int] = []

    async def stream() -> AsyncIterator[Event]:
        yield Event(0, settled)
        raise ValueError("the stream broke")

    waiting = asyncio.get_running_loop().create_future()

    async def begin(_: Record) -> Awaitable[int]:
        return waiting

    async def settle(_: Sequence[int]) -> None:
        return None

    with pytest.raises(ExceptionGroup):
        await Delivery(begin, settle, window=5).run(stream())
    assert settled == []
    assert waiting.cancelled()


async def test_cancelled_run_leaves_the_rest_unacknowledged() -> None:
    run = Run(5, endless=True)
    await quiet()
    await run.finish(0, 1, 3)
    run.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run.task
    assert run.settled == [0, 1]
    assert [run.finishing[offset].cancelled() for offset in (2, 4)] == [True, True]


async def test_run_cancelled_during_a_settle_acknowledges_none_of_it() -> None:
    run = Run(2, endless=True)

    async def for_ever(_: list[int]) -> None:
        await asyncio.Event().wait()

    run.before_settle = for_ever
    await quiet()
    await run.finish(0, 1)
    run.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run.task
    assert run.settled == []


async def test_a_stream_without_events_ends() -> None:
    run = Run(0)
    async with asyncio.timeout(5):
        await run.task
    assert run.batches == []
