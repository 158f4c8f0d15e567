"""`up` as a process, for tests that kill it and its children."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[3]
"""The directory that has `streams`."""


async def eventually(condition: Callable[[], bool], within_s: float = 120.0) -> None:
    """Poll until a condition holds. Raises TimeoutError."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.02)


def is_alive(pid: int) -> bool:
    """True if a process runs; a zombie does not."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


class Up:
    def __init__(self, directory: Path, port: int) -> None:
        self.directory = directory
        self.bootstrap = f"127.0.0.1:{port}"
        self.errors = directory.with_name(f"{directory.name}-{os.urandom(3).hex()}.err")
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                (sys.executable, str(Path(__file__).with_name("toy_up.py")), str(directory), str(port)),
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                start_new_session=True,
                text=True,
            )

    def pid_of(self, name: str) -> int:
        """Return the pid in the pid file of a child; 0 without a file."""
        with suppress(OSError, ValueError):
            return int((self.directory / "run" / f"{name}.pid").read_text())
        return 0

    async def line(self) -> str:
        """Return the next line of standard output; empty at the end."""
        assert self.process.stdout
        return await asyncio.to_thread(self.process.stdout.readline)

    async def code(self) -> int:
        return await asyncio.to_thread(self.process.wait)

    async def end(self, order: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(order)
        return await self.code()

    def wipe(self) -> None:
        """Terminate the supervisor and kill its remaining children."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for name in ("worker", "broker"):
            if pid := self.pid_of(name):
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
        if self.process.stdout:
            self.process.stdout.close()


@contextmanager
def supervised(directory: Path, port: int) -> Iterator[Up]:
    """Start `up` on a directory and end it with its children afterwards."""
    up = Up(directory, port)
    try:
        yield up
    finally:
        up.wipe()
