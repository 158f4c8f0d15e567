"""One supervisor for each data directory, and no children of an earlier one.

The kernel's file lock is released when its process ends in any way. Children outlive a killed supervisor; the next one
finds them by their pid files, verifies by their environment that they are ours, and ends them.
"""

import asyncio
import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from streams.adapters.embedding.process.embedder_process import end_shared_processes, pid_of
from streams.settings import shared_embedder_dir
from streams.up.child import CHILD_MARK_VARIABLE, REPLACEMENT_SUFFIX, child_mark, read_pid
from streams.up.console import PrintLine
from streams.up.layout import Layout

FIRST_WORKER = "worker"
"""The name of the first worker; the others have a number behind it."""


def child_names(layout: Layout) -> list[str]:
    """Return the children that may run, in the order of shutdown: each needs the later ones to end cleanly."""
    workers = sorted(file.stem for file in layout.run.glob(f"{FIRST_WORKER}*.pid"))
    return ["gateway", *workers, "broker"]


ORPHAN_GRACE_S = 10.0
"""Time limit for an orphan to end after a signal."""

ORPHAN_POLL_INTERVAL_S = 0.05
"""Interval between checks of an orphan: no event reports the end of another process's child."""

MAX_ENVIRON_READS = 20
"""Retries of an empty environment: the kernel shows it empty for a moment while a process becomes its command, and an
orphan that is not recognised then would live on."""

ENVIRON_RETRY_S = 0.001
"""Pause between these reads; a zombie costs all of them, once."""

PROC_DIR = Path("/proc")
"""Linux's process file system; elsewhere `ps` is used."""


class StartRefused(Exception):
    """The supervisor must not run; the text says why."""

    exit_code = os.EX_UNAVAILABLE


class SettingsRefused(StartRefused):
    """A child refuses its settings: a restart would not help."""

    exit_code = os.EX_CONFIG


@contextmanager
def hold_data_dir(layout: Layout) -> Iterator[None]:
    """Lock the data directory. Raises StartRefused if another supervisor holds it."""
    with layout.lock.open("a+", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            raise StartRefused(f"{layout.data_dir} is in use by another `up`, process {holder}") from error
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


async def end_orphans(layout: Layout, print_line: PrintLine) -> None:
    """End the children of an earlier supervisor, and their shared embedders; delete their pid files."""
    for name in child_names(layout):
        pid = read_pid(layout.pid_file(name))
        if pid is not None and is_child(pid, layout, name):
            print_line(f"ending the {name} of an earlier start, process {pid}")
            await _end(pid, layout, name)
        layout.pid_file(name).unlink(missing_ok=True)
    # They end with the last worker, unless they hang.
    end_shared_processes(shared_embedder_dir(layout.data_dir))


def is_child(pid: int, layout: Layout, name: str) -> bool:
    """True if this process runs and is that child of this directory, not another process with a reused pid."""
    mark = child_mark(layout, name.removesuffix(REPLACEMENT_SUFFIX))
    return f"{CHILD_MARK_VARIABLE}={mark}".encode() in _settled_environment(pid)


def _settled_environment(pid: int) -> bytes:
    """Return the environment of a process, in no particular format; empty if it has ended or is not readable."""
    with suppress(OSError):
        for _ in range(MAX_ENVIRON_READS):
            if environment := _environment(pid):
                return environment
            time.sleep(ENVIRON_RETRY_S)
    return b""


def _environment(pid: int) -> bytes:
    """Read the environment once. Raises OSError if there is no such process or another user owns it."""
    if PROC_DIR.joinpath("self", "environ").exists():
        return PROC_DIR.joinpath(str(pid), "environ").read_bytes()
    return subprocess.run(["ps", "-Eww", "-o", "command=", "-p", str(pid)], capture_output=True, check=False).stdout


async def _end(pid: int, layout: Layout, name: str) -> None:
    for order, grace_s in ((signal.SIGTERM, ORPHAN_GRACE_S), (signal.SIGKILL, ORPHAN_GRACE_S)):
        with suppress(ProcessLookupError):
            os.kill(pid, order)
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_s):
                while is_child(pid, layout, name):
                    await asyncio.sleep(ORPHAN_POLL_INTERVAL_S)
                return
    raise StartRefused(f"the {name} of an earlier start, process {pid}, can't be ended: end it, then start again")


def supervisor_of(layout: Layout) -> int | None:
    """Return the process id of the supervisor of a data directory; None if none runs."""
    return pid_of(layout.lock) if layout.lock.exists() else None
