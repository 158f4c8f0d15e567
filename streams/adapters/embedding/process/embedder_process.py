"""One run of an embedder's process, as its session sees it: a way to it, its end, and what it was at."""

import asyncio
import os
import subprocess
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

PROJECT_ROOT = Path(__file__).parents[4]
"""The process's working directory: the project is not an installed package."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Passages run in parallel on all cores, so one matrix product must not use more than one."""

STOP_TIMEOUT_S = 5.0


class EmbedderProcess(Protocol):
    """A process that embeds texts, and the connection to it."""

    @property
    def pid(self) -> int:
        """The process id; 0 where there is none, or it is not known yet."""

    def read(self, length: int) -> bytes:
        """Read so many bytes, blocking; fewer at the end. Only before `connect`."""

    def reason(self) -> str:
        """Return why the first frame did not come. Blocks until the process has ended."""

    async def connect(self, reader: asyncio.Protocol) -> asyncio.WriteTransport:
        """Have the event loop read; return the way to write."""

    def under_way(self) -> Collection[bytes] | None:
        """Return the keys of the texts that it was at when it died; None: perhaps all that were sent."""

    def abandon(self) -> None:
        """End a blocking `read`, and what is needed for this session alone."""

    def kill(self) -> None:
        """Kill the process: it hangs."""

    async def end(self, writing: asyncio.WriteTransport | None) -> None:
        """Close the connection; afterwards the process has ended, unless others use it."""


class PipedProcess:
    """A child over pipes, of this session alone. Implements `EmbedderProcess`."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it. Raises OSError."""
        self._process = subprocess.Popen(  # noqa: S603
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            cwd=PROJECT_ROOT,
            env=os.environ | ONE_THREAD,
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs, or has not been waited for."""
        return self._process.returncode

    def read(self, length: int) -> bytes:
        assert self._process.stdout is not None
        content = b""
        while len(content) < length and (more := self._process.stdout.read(length - len(content))):
            content += more
        return content

    def reason(self) -> str:
        return f"ended with code {self._process.wait()} while it loaded its model; see the log"

    async def connect(self, reader: asyncio.Protocol) -> asyncio.WriteTransport:
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: reader, self._process.stdout)
        writing, _ = await loop.connect_write_pipe(asyncio.Protocol, self._process.stdin)
        return writing

    def under_way(self) -> None:
        return None

    def abandon(self) -> None:
        # Ends the thread's read before `end` closes the pipe under it.
        self._process.kill()
        self._process.wait()

    def kill(self) -> None:
        self._process.kill()

    async def end(self, writing: asyncio.WriteTransport | None) -> None:
        """Close its input, which ends it; kill it if that takes too long."""
        for pipe in (self._process.stdin, self._process.stdout) if writing is None else ():
            assert pipe is not None
            pipe.close()
        if writing is not None:
            writing.close()
        try:
            await asyncio.to_thread(self._process.wait, STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            await asyncio.to_thread(self._process.wait)
