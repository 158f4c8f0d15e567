"""One supervisor for each data directory, and no child of an earlier one beside it.

The lock is the kernel's, so it falls with the process that holds it, however that ends. Children outlive a supervisor
that is killed; the next one finds them by their pid files and ends them, after it has made sure that they are ours.
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

from streams.up.child import CHILD_MARK_VARIABLE, child_mark
from streams.up.console import Tell
from streams.up.layout import Layout

CHILD_NAMES = ("worker", "broker")
"""The children in the order in which they are ended: a worker ends cleanly only while its broker lives."""

ORPHAN_GRACE_S = 10.0
"""How long an orphan may take to end by itself."""

ORPHAN_POLL_INTERVAL_S = 0.05
"""The pause between two looks at a process that is no child of ours, so that nothing tells us of its end."""

MAX_ENVIRON_READS = 20
"""How often an environment that is empty is looked at again: for a moment, while a process becomes its command, the
kernel shows it empty, and an orphan that was not recognised then would live on."""

ENVIRON_RETRY_S = 0.001
"""The pause between these looks; a process that has ended and was not waited for costs all of them, once."""

PROC_DIR = Path("/proc")
"""Where Linux shows every process; elsewhere `ps` is asked."""


class StartRefused(Exception):
    """The supervisor must not run here and now; the text says why."""


@contextmanager
def hold_data_dir(layout: Layout) -> Iterator[None]:
    """Hold the data directory. Raises Refused when another supervisor does."""
    with layout.lock.open("a+", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.seek(0)
            reason = f"{layout.data_dir} is in use by another `up`, process {lock.read().strip() or 'unknown'}"
            raise StartRefused(reason) from error
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


async def end_orphans(layout: Layout, tell: Tell) -> None:
    """End what an earlier supervisor left running, and take the pid files away."""
    for name in CHILD_NAMES:
        pid = _recorded(layout.pid_file(name))
        if pid is not None and is_child(pid, layout, name):
            tell(f"ending the {name} that an earlier start left behind, process {pid}")
            await _end(pid, layout, name)
        layout.pid_file(name).unlink(missing_ok=True)


def is_child(pid: int, layout: Layout, name: str) -> bool:
    """Whether this process runs and is that child of this directory, and not another that got its pid later."""
    return f"{CHILD_MARK_VARIABLE}={child_mark(layout, name)}".encode() in _settled_environment(pid)


def _recorded(pid_file: Path) -> int | None:
    try:
        return int(pid_file.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _settled_environment(pid: int) -> bytes:
    """The environment of a process, in no particular format; empty when it has ended or is not ours to see."""
    with suppress(OSError):
        for _ in range(MAX_ENVIRON_READS):
            if environment := _environment(pid):
                return environment
            time.sleep(ENVIRON_RETRY_S)
    return b""


def _environment(pid: int) -> bytes:
    """What is shown at this moment. Raises OSError when there is no such process, or it is another's."""
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
    reason = f"the {name} of an earlier start, process {pid}, can't be ended"
    raise StartRefused(reason)
