"""One child process."""

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from streams.up.child import Child
from streams.up.layout import Layout
from streams.up.ownership import is_child
from tests.worlds.live.supervised import eventually


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path / "with 'quotes' and $signs")
    layout.create()
    return layout


Start = Callable[..., Awaitable[Child]]
"""Starts a command with its arguments."""


@pytest.fixture
async def start(layout: Layout) -> AsyncIterator[Start]:
    """Starts children, which are gone after the test, however it ends."""
    children: list[Child] = []

    async def start(*command: str) -> Child:
        children.append(await Child.start(layout, "worker", command, {"GIVEN": "as given"}))
        return children[-1]

    yield start
    for child in children:
        if child.exit_code is None:
            os.kill(child.pid, signal.SIGKILL)
            await child.wait()


async def until_it_wrote(log: Path, text: str) -> None:
    await eventually(lambda: text in log.read_text())


async def test_the_pid_file_is_there_before_the_command_runs_and_gone_after_it(layout: Layout, start: Start) -> None:
    child = await start("cat", str(layout.pid_file("worker")))
    assert await child.wait() == 0
    assert layout.log("worker").read_text() == f"{child.pid}\n"
    assert list(layout.run.iterdir()) == []


async def test_its_output_and_errors_are_added_to_its_log(layout: Layout, start: Start) -> None:
    await (await start("/bin/sh", "-c", 'echo "$GIVEN"; echo wrong >&2')).wait()
    await (await start("/bin/sh", "-c", "echo again")).wait()
    assert layout.log("worker").read_text() == "as given\nwrong\nagain\n"


async def test_it_has_a_session_of_its_own(start: Start) -> None:
    child = await start("sleep", "600")
    assert os.getsid(child.pid) == child.pid


async def test_killing_one_ends_the_processes_that_it_started_too(layout: Layout, start: Start) -> None:
    child = await start("/bin/sh", "-c", "sleep 600 & echo $!; wait")
    await until_it_wrote(layout.log("worker"), "\n")
    grandchild = int(layout.log("worker").read_text())
    assert is_child(grandchild, layout, "worker")
    child.kill()
    await child.wait()
    await eventually(lambda: not is_child(grandchild, layout, "worker"))


async def test_one_that_does_not_end_when_asked_is_killed(layout: Layout, start: Start) -> None:
    child = await start("/bin/sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.1; done")
    await until_it_wrote(layout.log("worker"), "deaf")
    assert await child.stop(0.2) == -signal.SIGKILL


async def test_one_that_ends_when_asked_may_say_how(layout: Layout, start: Start) -> None:
    child = await start("/bin/sh", "-c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.1; done")
    await until_it_wrote(layout.log("worker"), "ready")
    assert await child.stop(20) == 5


async def test_stopping_one_that_has_ended_tells_its_code(start: Start) -> None:
    child = await start("/bin/sh", "-c", "exit 3")
    assert await child.wait() == 3
    assert await child.stop(20) == 3
