"""The demo with everything around it: `streams up` as a child on a free port, the demo, and a clean end."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

from streams.demo.script import run_demo
from streams.settings import Settings
from streams.up.ports import free_port

SYSTEM_STOP_TIMEOUT_S = 45.0
"""How long a clean end may take before it is a defect: worker and broker have 20 s each."""


async def run_demo_system(data_dir: Path, settings: Settings) -> int:
    """Start, run the demo, end. Returns the demo's exit code, or that of a system that did not start."""
    models = str(settings.models.absolute())
    system = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "streams", "up", "--data-dir", str(data_dir), "--port", str(free_port())),
        stdout=PIPE,
        env=os.environ | {"MODESTREAM_MODEL_DIR": models},
        # Ctrl-C is ours to pass on, once.
        start_new_session=True,
    )
    try:
        bootstrap = await _ready(system)
        if bootstrap is None:
            return await system.wait() or 1
        return await run_demo(bootstrap, print, settings.topic_prefix)
    finally:
        await _end(system)


async def _ready(system: Process) -> str | None:
    assert system.stdout is not None
    async for line in system.stdout:
        told = line.decode().strip()
        if told.startswith("ready bootstrap="):
            return told.removeprefix("ready bootstrap=")
    return None


async def _end(system: Process) -> None:
    if system.returncode is None:
        system.send_signal(signal.SIGTERM)
        await asyncio.wait_for(system.wait(), SYSTEM_STOP_TIMEOUT_S)
