"""Run `streams up` as a child process on a free port."""

import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from streams.up.supervisor import ready_addresses, start_up

ROOT = Path(__file__).parents[2]
"""The root of the project."""


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
async def running(
    data_dir: Path, settings: Mapping[str, str] | None = None, *, workers: int = 1
) -> AsyncIterator[System]:
    """Run `up` on this directory until the block ends; `settings` are environment variables for it.

    Raises RuntimeError when it does not start.
    """
    began = time.perf_counter()
    up = await start_up(data_dir, _environment(settings or {}), ROOT, workers=workers)
    try:
        addresses = await ready_addresses(up)
        if addresses is None:
            raise RuntimeError(f"`streams up` ended with code {await up.wait()} before it was ready")
        seconds = time.perf_counter() - began
        yield System(addresses["bootstrap"], data_dir, seconds, up.pid, addresses["http"])
    finally:
        if up.returncode is None:
            up.terminate()
        await up.wait()


def _environment(settings: Mapping[str, str]) -> dict[str, str]:
    """Return this process's environment with these settings, without any other `MODESTREAM_*` variables."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MODESTREAM_")}
    return own | dict(settings)
