"""`streams demo`: run `streams up` as a child on a free port, then the demo, then stop the child."""

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
"""Limit of a clean end: worker and broker have 20 s each."""


async def run_demo_system(data_dir: Path, settings: Settings) -> int:
    """Start the system, run the demo, stop. Return the exit code of the demo, or of a system that failed to start."""
    models = str(settings.models.absolute())
    system = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            "-m",
            "streams",
            "up",
            "--data-dir",
            str(data_dir),
            "--port",
            str(free_port()),
            "--http-port",
            "0",
        ),
        stdout=PIPE,
        env=os.environ | {"MODESTREAM_MODEL_DIR": models},
        # Ctrl-C reaches only this process, which stops the child once.
        start_new_session=True,
    )
    try:
        addresses = await _ready(system)
        if addresses is None:
            return await system.wait() or 1
        return await run_demo(addresses["bootstrap"], print, settings.topic_prefix, url=addresses.get("http"))
    finally:
        await _end(system)


async def _ready(system: Process) -> dict[str, str] | None:
    """Return the addresses in the ready line by name; None if the system ends before."""
    assert system.stdout is not None
    async for line in system.stdout:
        message = line.decode().strip()
        if message.startswith("ready bootstrap="):
            return dict(one.split("=", 1) for one in message.split()[1:])
    return None


async def _end(system: Process) -> None:
    if system.returncode is None:
        system.send_signal(signal.SIGTERM)
        await asyncio.wait_for(system.wait(), SYSTEM_STOP_TIMEOUT_S)
