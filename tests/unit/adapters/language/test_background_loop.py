"""Work in a background event loop, in a thread of its own."""

import asyncio
import threading

import pytest

from streams.adapters.language.litellm_library import BackgroundEventLoop


async def test_blocking_work_does_not_block_the_callers_loop() -> None:
    aside, released, turns = BackgroundEventLoop("aside"), threading.Event(), 0

    async def hold() -> str:
        released.wait(10)
        return threading.current_thread().name

    held = asyncio.create_task(aside.run(hold()))
    while turns < 100:
        await asyncio.sleep(0)
        turns += 1
    assert not held.done()
    released.set()
    assert await held == "aside"
    await aside.stop()


async def test_exception_is_raised_to_the_caller() -> None:
    aside = BackgroundEventLoop("aside")

    async def fail() -> None:
        raise ValueError("as told")

    with pytest.raises(ValueError, match="as told"):
        await aside.run(fail())
    await aside.stop()


async def test_cancellation_is_passed_on() -> None:
    aside, begun, ended = BackgroundEventLoop("aside"), threading.Event(), threading.Event()

    async def wait_for_ever() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    waiting = asyncio.create_task(aside.run(wait_for_ever()))
    await asyncio.to_thread(begun.wait, 10)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await asyncio.to_thread(ended.wait, 10)
    await aside.stop()


async def test_stop_ends_the_thread() -> None:
    aside = BackgroundEventLoop("aside that ends")
    await aside.run(asyncio.sleep(0))
    await aside.stop()
    assert "aside that ends" not in {thread.name for thread in threading.enumerate()}


async def test_stop_ends_what_a_library_left_running() -> None:
    aside = BackgroundEventLoop("aside")
    left: list[asyncio.Task[None]] = []

    async def leave_running() -> None:
        left.append(asyncio.create_task(asyncio.sleep(3600)))

    await aside.run(leave_running())
    await aside.stop()
    assert left[0].cancelled()
