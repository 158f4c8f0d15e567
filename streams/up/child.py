"""One child process: its own session, its pid in a file before it runs, its output in a log of bounded size.

With its own session, Ctrl-C in a terminal reaches the supervisor alone, which then stops its children in order.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from streams.up.layout import Layout

WRITE_PID_THEN_BECOME = 'echo $$ >"$0.new" && mv "$0.new" "$0" && exec "$@"'
"""The child writes its own pid atomically and then becomes the command: a supervisor killed at any moment leaves no
child that a later start could not find."""

CHILD_MARK_VARIABLE = "STREAMS_UP_CHILD"
"""Environment variable of every child; it proves that a pid still belongs to our child."""

REPLACEMENT_SUFFIX = "-next"
"""Suffix of the pid file of a child's replacement."""

MAX_LOG_BYTES = 10_000_000
"""A larger log is rotated."""

TAIL_LINES = 3
"""Lines repeated on the console when a child ends by itself: usually the last line names the error."""

TAIL_BYTES = 8192
"""Bytes at the end of a log searched for its last lines."""


def child_mark(layout: Layout, name: str) -> str:
    """Return the value of `CHILD_MARK_VARIABLE` of a child of this data directory."""
    return f"{name}@{layout.data_dir}"


def is_supervised() -> bool:
    return CHILD_MARK_VARIABLE in os.environ


class Child:
    """A running child; it has ended when `wait` or `stop` returns."""

    def __init__(self, process: asyncio.subprocess.Process, pid_file: Path) -> None:
        self._process = process
        self._pid_file = pid_file

    @classmethod
    async def start(
        cls,
        layout: Layout,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        without: Collection[str] = (),
        stdin: int = asyncio.subprocess.DEVNULL,
        is_replacement: bool = False,
    ) -> "Child":
        """Start `command`. `environment` is added to the supervisor's, `without` some of its variables.

        Raises OSError. A replacement has a separate pid file until it succeeds the child of this name.
        """
        pid_file = layout.pid_file(name + REPLACEMENT_SUFFIX if is_replacement else name)
        inherited = {variable: value for variable, value in os.environ.items() if variable not in without}
        with layout.log(name).open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *("/bin/sh", "-c", WRITE_PID_THEN_BECOME, str(pid_file), *command),
                stdin=stdin,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**inherited, **environment, CHILD_MARK_VARIABLE: child_mark(layout, name)},
            )
        return cls(process, pid_file)

    @property
    def pid(self) -> int:
        """The process id; unchanged when the shell becomes the command."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative when a signal ended it."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait for its end and delete its pid file."""
        code = await self._process.wait()
        # Unless the file is a replacement's by now.
        if read_pid(self._pid_file) == self.pid:
            self._pid_file.unlink(missing_ok=True)
        return code

    def succeed(self) -> None:
        """Take the place of the ended child that this one replaces."""
        place = self._pid_file.with_name(self._pid_file.name.replace(REPLACEMENT_SUFFIX, ""))
        with suppress(FileNotFoundError):
            self._pid_file.replace(place)
        self._pid_file = place

    def kill(self) -> None:
        """Kill it and its own children. `wait` returns soon after."""
        if self.exit_code is None:
            with suppress(ProcessLookupError):
                # Its process group has its pid, as it leads a session.
                os.killpg(self.pid, signal.SIGKILL)

    async def stop(self, grace_s: float) -> int:
        """Terminate it, kill it after `grace_s` seconds, and return its exit code."""
        with suppress(ProcessLookupError):
            self._process.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                return await self.wait()
        self.kill()
        return await self.wait()


def read_pid(pid_file: Path) -> int | None:
    try:
        return int(pid_file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def rotate_log(log: Path) -> None:
    """Copy a log that has grown too large to `NAME.1`, and empty it.

    The child has it open for appending and continues at the new end; lines written between copy and truncation are
    lost.
    """
    if log.is_file() and log.stat().st_size > MAX_LOG_BYTES:
        shutil.copyfile(log, log.with_name(f"{log.name}.1"))
        with log.open("r+b") as file:
            file.truncate(0)


def tail_log(log: Path) -> list[str]:
    """Return the last non-empty lines of a log, cut to 300 characters."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    return [line[:300] for line in lines if line.strip()][-TAIL_LINES:]
