"""Run `streams up` as a child process on a free port."""

import asyncio
import os
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from streams.up.ports import free_port

ROOT = Path(__file__).parents[2]
"""The root of the project."""

READY = "ready bootstrap="


@dataclass(frozen=True, slots=True)
class System:
    """A running system."""

    bootstrap: str
    """`127.0.0.1:PORT`."""
    data_dir: Path
    seconds_to_ready: float
    supervisor: int
    """The pid of the supervisor."""
    url: str
    """Address of the gateway, `http://127.0.0.1:PORT`."""

    def pid(self, child: str) -> int:
        """Return the pid of `broker`, `worker` or `gateway`."""
        return int((self.data_dir / "run" / f"{child}.pid").read_text())


@asynccontextmanager
async def running(data_dir: Path, settings: Mapping[str, str] | None = None) -> AsyncIterator[System]:
    """Run `up` on this directory until the block ends; `settings` are environment variables for it.

    Raises RuntimeError when it does not start.
    """
    began = time.perf_counter()
    up = await asyncio.create_subprocess_exec(
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
        env=_environment(settings or {}),
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        bootstrap, url = await _ready(up)
        yield System(bootstrap, data_dir, time.perf_counter() - began, up.pid, url)
    finally:
        if up.returncode is None:
            up.terminate()
        await up.wait()


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with these settings, without any other `MODESTREAM_*` variables."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MODESTREAM_")}
    return own | dict(settings)


async def _ready(up: Process) -> tuple[str, str]:
    """Return the addresses of the broker and of the gateway."""
    assert up.stdout is not None
    async for line in up.stdout:
        text = line.decode().strip()
        if text.startswith(READY):
            bootstrap, _, url = text.removeprefix(READY).partition(" http=")
            return bootstrap, url
    raise RuntimeError(f"`streams up` ended with code {await up.wait()} before it was ready")
