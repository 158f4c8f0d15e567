"""`up` as a process of its own, for tests that kill it and its children."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[3]
"""Where `streams` is imported from."""


async def eventually(condition: Callable[[], bool], within_s: float = 60.0) -> None:
    """Wait for something that only looking can tell. Raises TimeoutError."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be reaped does not."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


class Up:
    """A supervisor that was started on a data directory."""

    def __init__(self, directory: Path, port: int) -> None:
        self._directory = directory
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
        """The pid that the pid file of a child names; 0 while there is none."""
        with suppress(OSError, ValueError):
            return int((self._directory / "run" / f"{name}.pid").read_text())
        return 0

    async def line(self) -> str:
        """The next line on standard output; empty at its end."""
        assert self.process.stdout
        return await asyncio.to_thread(self.process.stdout.readline)

    async def code(self) -> int:
        """Its exit code, when it has ended."""
        return await asyncio.to_thread(self.process.wait)

    async def end(self, order: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(order)
        return await self.code()

    def wipe(self) -> None:
        """End whatever is left: the supervisor, which ends its children, and what a killed one left behind."""
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
    """Start `up` on a directory; nothing of it is left afterwards, however the test ends."""
    up = Up(directory, port)
    try:
        yield up
    finally:
        up.wipe()
