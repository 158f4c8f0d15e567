"""`python -m streams up` of any checkout as a process."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from streams.up.layout import free_port

CHILDREN = ("worker", "broker", "gateway")


class StreamsUp:
    """The processes of `up`, on free ports. Its errors are in a file beside the data directory."""

    def __init__(self, checkout: Path, data_dir: Path, models: Path) -> None:
        self.data_dir = data_dir
        self.bootstrap = f"127.0.0.1:{(port := free_port())}"
        self.errors = data_dir.with_name(f"{data_dir.name}-{port}.err")
        path = os.pathsep.join((str(checkout), str(checkout / "client")))
        options = ("--data-dir", str(data_dir), "--port", str(port), "--http-port", "0")
        with self.errors.open("wb") as errors:
            self._process = subprocess.Popen(
                (sys.executable, "-m", "streams", "up", *options),
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=checkout,
                env={**os.environ, "PYTHONPATH": path, "MODESTREAM_MODEL_DIR": str(models)},
                start_new_session=True,
                text=True,
            )

    async def ready(self) -> None:
        """Wait until it serves. Raises AssertionError with its log."""
        assert self._process.stdout
        line = await asyncio.to_thread(self._process.stdout.readline)
        assert re.match("ready bootstrap=", line), self.errors.read_text() + self.log()

    def log(self) -> str:
        """Return the end of the worker's log."""
        with suppress(OSError):
            return (self.data_dir / "logs" / "worker.log").read_text()[-4000:]
        return ""

    async def end(self) -> int:
        """End it cleanly and return the exit code."""
        self._process.send_signal(signal.SIGTERM)
        return await asyncio.to_thread(self._process.wait)

    def kill(self) -> None:
        pids = [int(file.read_text()) for name in CHILDREN if (file := self._pid_file(name)).exists()]
        self._process.kill()
        for pid in pids:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()

    def _pid_file(self, name: str) -> Path:
        return self.data_dir / "run" / f"{name}.pid"


@contextmanager
def running_up(checkout: Path, data_dir: Path, models: Path) -> Iterator[StreamsUp]:
    """Start `up` on a data directory; kill what is left of it afterwards."""
    up = StreamsUp(checkout, data_dir, models)
    try:
        yield up
    finally:
        up.kill()
