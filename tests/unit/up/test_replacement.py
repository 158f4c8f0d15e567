"""The replacement of a child: loaded before the child ends, it begins when that has ended."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from streams.up.child import Child, read_pid
from streams.up.layout import Layout
from streams.up.ownership import end_orphans
from streams.up.replacement import REPLACEMENT_VARIABLE, Replacement
from streams.up.supervised import ServiceSpec, SupervisedChild

PROGRAM = """
import sys, time
from streams.up.replacement import wait_for_begin
wait_for_begin()
print("begun", flush=True)
time.sleep(600)
"""

COMMAND = (sys.executable, "-c", PROGRAM)

FAILING = (*("/bin/sh", "-c"), f'[ -z "${REPLACEMENT_VARIABLE}" ] || exit 1; echo begun; exec sleep 600')
"""A program that can't be a replacement."""


@pytest.fixture(params=[COMMAND, FAILING], ids=["loads", "fails"])
async def supervised(layout: Layout, request: pytest.FixtureRequest) -> AsyncIterator[SupervisedChild]:
    async def start() -> Child:
        return await Child.start(layout, "worker", request.param, {})

    async def start_replacement() -> Replacement:
        return await Replacement.start(layout, "worker", request.param, {})

    async def watch(_: Child) -> str:
        await asyncio.Event().wait()
        return ""

    child = SupervisedChild(
        ServiceSpec("worker", layout.log("worker"), 5.0, start, watch, start_replacement), lambda _: None
    )
    running = asyncio.create_task(child.run())
    yield child
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    await child.stop()


async def until_begun(layout: Layout, times: int) -> int:
    """Wait until the program has begun so often; return its process id."""
    async with asyncio.timeout(30):
        while not layout.log("worker").exists() or layout.log("worker").read_text().count("begun") < times:
            await asyncio.sleep(0.02)
    pid = read_pid(layout.pid_file("worker"))
    assert pid is not None
    return pid


async def test_replacement_takes_the_place_of_the_child(layout: Layout, supervised: SupervisedChild) -> None:
    first = await until_begun(layout, 1)
    await supervised.prepare()
    assert read_pid(layout.pid_file("worker")) == first
    assert layout.log("worker").read_text().count("begun") == 1
    await supervised.restart()
    assert await until_begun(layout, 2) != first
    assert not layout.pid_file("worker-next").exists()


async def test_replacement_of_a_killed_supervisor_is_ended_by_the_next_one(layout: Layout) -> None:
    replacement = await Replacement.start(layout, "worker", ("sleep", "600"), {})
    while not layout.pid_file("worker-next").exists():
        await asyncio.sleep(0.01)
    printed: list[str] = []
    await end_orphans(layout, printed.append)
    assert await replacement._child.wait() < 0
    assert "worker-next of an earlier start" in printed[0]
    await replacement.end()
