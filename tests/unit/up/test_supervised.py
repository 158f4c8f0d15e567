"""Restarts: their backoff, and the child that is not started again."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from streams.up.child import Child
from streams.up.layout import Layout
from streams.up.ownership import StartRefused
from streams.up.supervised import RestartBackoff, ServiceSpec, SupervisedChild


def test_backoff_doubles_after_the_first_short_life_up_to_5_s() -> None:
    pace = RestartBackoff()
    assert [pace.pause_after(1.0) for _ in range(8)] == [0.0, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert pace.short_in_a_row == 8


def test_long_life_resets_the_backoff() -> None:
    pace = RestartBackoff()
    for _ in range(4):
        pace.pause_after(0.1)
    assert pace.pause_after(3600.0) == 0.0
    assert pace.short_in_a_row == 0
    assert [pace.pause_after(1.0) for _ in range(2)] == [0.0, 0.2]


@pytest.mark.parametrize("was_ready", [False, True])
async def test_child_that_refuses_its_settings_is_not_started_again(tmp_path: Path, *, was_ready: bool) -> None:
    layout, printed = Layout(tmp_path), list[str]()
    layout.create()
    program = f"import sys; print('a setting is wrong', file=sys.stderr); sys.exit({os.EX_CONFIG})"

    async def start() -> Child:
        return await Child.start(layout, "worker", (sys.executable, "-c", program), {})

    async def watch(_: Child) -> str:
        await asyncio.Event().wait()
        return ""

    spec = ServiceSpec("worker", layout.log("worker"), 1.0, start, watch)
    supervised = SupervisedChild(spec, printed.append)
    supervised.was_ready = was_ready
    with pytest.raises(StartRefused, match="refuses its settings"):
        await supervised.run()
    assert [line for line in printed if "setting is wrong" in line] == ["  a setting is wrong"]
