"""`streams demo`: run `streams up` as a child on a free port, then the demo, then stop the child."""

import asyncio
import os
import signal
from pathlib import Path

from streams.demo.script import run_demo, window_lines
from streams.settings import Settings
from streams.up.supervisor import ready_addresses, start_up

SYSTEM_STOP_TIMEOUT_S = 45.0
"""Limit of a clean end: worker and broker have 20 s each."""


async def run_demo_system(data_dir: Path, settings: Settings) -> int:
    """Start the system, run the demo, stop. Return the exit code of the demo, or of a system that failed to start."""
    models = str(settings.models.absolute())
    system = await start_up(data_dir, os.environ | {"MODESTREAM_MODEL_DIR": models})
    try:
        addresses = await ready_addresses(system)
        if addresses is None:
            return await system.wait() or 1
        code = await run_demo(addresses["bootstrap"], print, settings.topic_prefix, url=addresses.get("http"))
        for line in window_lines(str(data_dir)):
            print(line)  # noqa: T201 - the demo is a program for a terminal
        return code
    finally:
        if system.returncode is None:
            system.send_signal(signal.SIGTERM)
            await asyncio.wait_for(system.wait(), SYSTEM_STOP_TIMEOUT_S)
