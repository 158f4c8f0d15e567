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
    """Start children that are killed after the test."""
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


async def test_pid_file_exists_while_the_command_runs(layout: Layout, start: Start) -> None:
    child = await start("cat", str(layout.pid_file("worker")))
    assert await child.wait() == 0
    assert layout.log("worker").read_text() == f"{child.pid}\n"
    assert list(layout.run.iterdir()) == []


async def test_output_and_errors_are_appended_to_the_log(layout: Layout, start: Start) -> None:
    await (await start("/bin/sh", "-c", 'echo "$GIVEN"; echo wrong >&2')).wait()
    await (await start("/bin/sh", "-c", "echo again")).wait()
    assert layout.log("worker").read_text() == "as given\nwrong\nagain\n"


async def test_a_child_does_not_get_the_variables_that_are_not_for_it(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_KEY", "secret")
    child = await Child.start(layout, "broker", ("/bin/sh", "-c", 'echo "<$MODEL_KEY>"'), {}, without={"MODEL_KEY"})
    await child.wait()
    assert layout.log("broker").read_text() == "<>\n"


async def test_child_leads_a_session(start: Start) -> None:
    child = await start("sleep", "600")
    assert os.getsid(child.pid) == child.pid


async def test_kill_ends_grandchildren_too(layout: Layout, start: Start) -> None:
    child = await start("/bin/sh", "-c", "sleep 600 & echo $!; wait")
    await until_it_wrote(layout.log("worker"), "\n")
    grandchild = int(layout.log("worker").read_text())
    assert is_child(grandchild, layout, "worker")
    child.kill()
    await child.wait()
    await eventually(lambda: not is_child(grandchild, layout, "worker"))


async def test_stop_kills_a_child_that_ignores_sigterm(layout: Layout, start: Start) -> None:
    child = await start("/bin/sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.1; done")
    await until_it_wrote(layout.log("worker"), "deaf")
    assert await child.stop(0.2) == -signal.SIGKILL


async def test_stop_returns_the_exit_code_of_a_clean_end(layout: Layout, start: Start) -> None:
    child = await start("/bin/sh", "-c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.1; done")
    await until_it_wrote(layout.log("worker"), "ready")
    assert await child.stop(20) == 5


async def test_stop_after_the_end_returns_the_exit_code(start: Start) -> None:
    child = await start("/bin/sh", "-c", "exit 3")
    assert await child.wait() == 3
    assert await child.stop(20) == 3
