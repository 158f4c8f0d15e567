"""One child process: its own session, its pid in a file before it runs, its output in a log.

Its own session means that Ctrl-C in a terminal reaches the supervisor alone, which then stops its children in order.
"""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from streams.up.layout import Layout

WRITE_PID_THEN_BECOME = 'echo $$ >"$0.new" && mv "$0.new" "$0" && exec "$@"'
"""The child writes its own pid, in one step, and then becomes the command: whoever kills the supervisor at whatever
moment leaves no child that a later start could not find."""

CHILD_MARK_VARIABLE = "STREAMS_UP_CHILD"
"""The variable that every child carries, and nothing else reads: it proves that a pid still is our child's."""


def child_mark(layout: Layout, name: str) -> str:
    """What a child of this directory has in its environment."""
    return f"{name}@{layout.data_dir}"


class Child:
    """A running child. It is gone when `wait` or `stop` has returned."""

    def __init__(self, process: asyncio.subprocess.Process, pid_file: Path) -> None:
        self._process = process
        self._pid_file = pid_file

    @classmethod
    async def start(cls, layout: Layout, name: str, command: Sequence[str], environment: Mapping[str, str]) -> "Child":
        """Start `command`. `environment` is added to the supervisor's own. Raises OSError."""
        with layout.log(name).open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *("/bin/sh", "-c", WRITE_PID_THEN_BECOME, str(layout.pid_file(name)), *command),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, **environment, CHILD_MARK_VARIABLE: child_mark(layout, name)},
            )
        return cls(process, layout.pid_file(name))

    @property
    def pid(self) -> int:
        """The process id; it stays the same when the shell becomes the command."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative when a signal ended it."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait for its end, and take its pid file away."""
        code = await self._process.wait()
        self._pid_file.unlink(missing_ok=True)
        return code

    def kill(self) -> None:
        """End it, and whatever it started itself, without asking. `wait` returns soon after."""
        if self.exit_code is None:
            with suppress(ProcessLookupError):
                # Its process group has its pid, because it leads a session of its own.
                os.killpg(self.pid, signal.SIGKILL)

    async def stop(self, grace_s: float) -> int:
        """Ask it to end, insist after `grace_s` seconds, and return its exit code."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                return await self.wait()
        self.kill()
        return await self.wait()
