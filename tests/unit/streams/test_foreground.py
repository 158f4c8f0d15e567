"""Requests under way, and how long work of a backlog waits for them."""

import asyncio

import pytest

from streams.foreground import Foreground


async def test_pause_after_a_long_wait_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.foreground.MAX_REQUEST_S", 60.0)
    foreground = Foreground()
    request = foreground.enter()
    async with asyncio.timeout(5):
        await foreground.give_way(60)
    request.leave()


async def test_request_counts_until_it_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.foreground.MAX_PAUSE_S", 60.0)
    foreground = Foreground()
    request, other = foreground.enter(), foreground.enter()
    waiting = asyncio.create_task(foreground.give_way(60))
    request.leave()
    request.leave()
    await asyncio.sleep(0.01)
    assert not waiting.done()
    other.leave()
    await waiting


async def test_request_that_takes_long_counts_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.foreground.MAX_REQUEST_S", 0.01)
    monkeypatch.setattr("streams.foreground.MAX_PAUSE_S", 60.0)
    foreground = Foreground()
    request = foreground.enter()
    async with asyncio.timeout(5):
        await foreground.give_way(60)
    request.leave()
    foreground.enter()
    waiting = asyncio.create_task(foreground.give_way(0.001))
    await asyncio.sleep(0)
    assert not waiting.done(), "leaving too late must not end another request"
    await waiting


async def test_next_request_is_expected_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.foreground.LULL_S", 0.02)
    foreground = Foreground()
    assert not foreground.is_expected
    foreground.enter().leave()
    assert foreground.is_expected
    await asyncio.sleep(0.03)
    assert not foreground.is_expected


async def test_without_requests_nothing_waits() -> None:
    async with asyncio.timeout(5):
        await Foreground().give_way(60)
        await Foreground().until_quiet(60)


async def test_a_wait_for_quiet_holds_up_no_pause_of_others() -> None:
    foreground = Foreground()
    request = foreground.enter()
    waiting = asyncio.create_task(foreground.until_quiet(60))
    async with asyncio.timeout(5):
        await foreground.give_way(0.001)
    assert not waiting.done()
    request.leave()
    await waiting


async def test_request_that_takes_long_gives_way_to_others_and_not_to_itself() -> None:
    foreground = Foreground()
    own = foreground.enter()
    with foreground.handling(own):
        long = asyncio.ensure_future(foreground.give_way_to_others(60))
    async with asyncio.timeout(5):
        await long
    assert not foreground._under_way
    other = foreground.enter()
    with foreground.handling(own):
        long = asyncio.ensure_future(foreground.give_way_to_others(60))
    await asyncio.sleep(0.001)
    assert not long.done()
    other.leave()
    await long
    own.leave()
    assert not foreground._under_way


async def test_while_a_request_is_expected_a_backlog_goes_on_event_by_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.foreground.LULL_S", 0.02)
    foreground = Foreground()
    undisturbed = foreground.slice_s
    assert undisturbed > 0
    request = foreground.enter()
    assert foreground.slice_s == 0
    request.leave()
    assert foreground.slice_s == 0
    await asyncio.sleep(0.03)
    assert foreground.slice_s == undisturbed


async def test_request_that_waits_for_a_backlog_does_not_slow_it() -> None:
    foreground = Foreground()
    request = foreground.enter()
    with foreground.handling(request):
        with foreground.waiting_for_backlog():
            assert not foreground.is_expected
        assert foreground.slice_s == 0, "from then on it counts again"
    request.leave()


async def test_request_that_counts_no_more_does_not_count_again_after_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.foreground.MAX_REQUEST_S", 0.01)
    monkeypatch.setattr("streams.foreground.LULL_S", 0.0)
    foreground = Foreground()
    with foreground.handling(foreground.enter()):
        await asyncio.sleep(0.02)
        with foreground.waiting_for_backlog():
            pass
    assert foreground.slice_s > 0
