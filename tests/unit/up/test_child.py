"""One child process."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from streams.up.child import Child
from streams.up.layout import Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "with 'quotes' and $signs")
    layout.create()
    return layout


async def run(layout: Layout, script: str) -> Child:
    return await Child.start(layout, "worker", ["/bin/sh", "-c", script], {"GIVEN": "as given"})


async def until_it_wrote(log: Path, text: str) -> None:
    async with asyncio.timeout(20):
        while text not in log.read_text():
            await asyncio.sleep(0.01)


async def test_the_pid_file_is_there_before_the_command_runs_and_gone_after_it(layout: Layout) -> None:
    child = await Child.start(layout, "worker", ["cat", str(layout.pid_file("worker"))], {})
    assert await child.wait() == 0
    assert layout.log("worker").read_text() == f"{child.pid}\n"
    assert list(layout.run.iterdir()) == []


async def test_its_output_and_errors_are_added_to_its_log(layout: Layout) -> None:
    await (await run(layout, 'echo "$GIVEN"; echo wrong >&2')).wait()
    await (await run(layout, "echo again")).wait()
    assert layout.log("worker").read_text() == "as given\nwrong\nagain\n"


async def test_it_has_a_session_of_its_own(layout: Layout) -> None:
    child = await run(layout, "sleep 600")
    assert os.getsid(child.pid) == child.pid
    await child.stop(0)


async def test_one_that_does_not_end_when_asked_is_killed(layout: Layout) -> None:
    child = await run(layout, "trap '' TERM; echo deaf; while :; do sleep 0.1; done")
    await until_it_wrote(layout.log("worker"), "deaf")
    assert await child.stop(0.2) == -signal.SIGKILL


async def test_one_that_ends_when_asked_may_say_how(layout: Layout) -> None:
    child = await run(layout, "trap 'exit 5' TERM; echo ready; while :; do sleep 0.1; done")
    await until_it_wrote(layout.log("worker"), "ready")
    assert await child.stop(20) == 5


async def test_stopping_one_that_has_ended_tells_its_code(layout: Layout) -> None:
    child = await run(layout, "exit 3")
    assert await child.wait() == 3
    assert await child.stop(20) == 3
