"""The lock of a data directory, and the end of orphans."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streams.up import ownership
from streams.up.child import CHILD_MARK_VARIABLE, Child, child_mark
from streams.up.layout import Layout
from streams.up.ownership import StartRefused, end_orphans, hold_data_dir, is_child


def discard(_: str) -> None:
    """Discard a message."""


@contextmanager
def process(environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    sleeper = subprocess.Popen(["sleep", "600"], env={**os.environ, **environment})
    try:
        yield sleeper
    finally:
        sleeper.kill()
        sleeper.wait()


def test_locked_directory_is_refused_until_it_is_released(layout: Layout) -> None:
    with (
        hold_data_dir(layout),
        pytest.raises(StartRefused, match=f"in use by another `up`, process {os.getpid()}"),
        hold_data_dir(layout),
    ):
        pass
    with hold_data_dir(layout):
        pass


async def test_orphan_is_ended_and_its_pid_file_deleted(layout: Layout) -> None:
    printed: list[str] = []
    with process({CHILD_MARK_VARIABLE: child_mark(layout, "worker")}) as orphan:
        layout.pid_file("worker").write_text(f"{orphan.pid}\n")
        await end_orphans(layout, printed.append)
        assert orphan.wait() < 0
    assert printed == [f"ending the worker of an earlier start, process {orphan.pid}"]
    assert not layout.pid_file("worker").exists()


@pytest.mark.parametrize(
    "environment", [{}, {CHILD_MARK_VARIABLE: "worker@/another/directory"}, {CHILD_MARK_VARIABLE: "broker@{data_dir}"}]
)
async def test_process_with_a_reused_pid_is_left_alone(layout: Layout, environment: dict[str, str]) -> None:
    marks = {name: value.format(data_dir=layout.data_dir) for name, value in environment.items()}
    with process(marks) as stranger:
        layout.pid_file("worker").write_text(str(stranger.pid))
        await end_orphans(layout, discard)
        assert stranger.poll() is None
    assert not layout.pid_file("worker").exists()


@pytest.mark.parametrize("text", ["", "x", "4194999"])
async def test_stale_pid_file_is_deleted(layout: Layout, text: str) -> None:
    layout.pid_file("broker").write_text(text)
    await end_orphans(layout, discard)
    assert not layout.pid_file("broker").exists()


async def test_child_is_recognised_by_its_mark_during_its_whole_life(layout: Layout) -> None:
    child = await Child.start(layout, "worker", ["sleep", "600"], {})
    assert is_child(child.pid, layout, "worker")
    child.kill()
    assert await child.wait() < 0
    assert not is_child(child.pid, layout, "worker")


async def test_empty_environment_is_read_again(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = iter([b"", b"", f"{CHILD_MARK_VARIABLE}={child_mark(layout, 'worker')}".encode()])
    monkeypatch.setattr(ownership, "_environment", lambda _: next(shown))
    assert is_child(4194999, layout, "worker")


async def test_unknown_process_is_left_alone_without_proc(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ownership, "PROC_DIR", tmp_path / "absent")
    with process({}) as stranger:
        layout.pid_file("worker").write_text(str(stranger.pid))
        await end_orphans(layout, discard)
        assert stranger.poll() is None
