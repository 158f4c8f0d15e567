"""`streams up` as the child of another program, such as the demo or a benchmark, on free ports.

Enters: a data directory and the environment. Leaves: the process, and the addresses of its ready line.
"""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from pathlib import Path

from streams.up.ports import free_port

READY = "ready "


async def start_up(
    data_dir: Path, environment: Mapping[str, str], cwd: Path | None = None, *, workers: int = 1
) -> Process:
    """Start `streams up` with the broker and the gateway on free ports; its standard output is a pipe."""
    options = ("--port", str(free_port()), "--http-port", "0", "--workers", str(workers))
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "streams", "up", "--data-dir", str(data_dir), *options),
        stdout=PIPE,
        env=environment,
        cwd=cwd,
        # Ctrl-C reaches only this process, which stops the child once.
        start_new_session=True,
    )


async def ready_addresses(up: Process) -> Mapping[str, str] | None:
    """Wait for the ready line and return its addresses, `bootstrap` and `http`; None if the system ends before."""
    assert up.stdout is not None
    async for line in up.stdout:
        text = line.decode().strip()
        if text.startswith(f"{READY}bootstrap="):
            return dict(pair.split("=", 1) for pair in text.removeprefix(READY).split())
    return None
