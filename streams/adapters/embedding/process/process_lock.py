"""Lock files of processes shared by workers: a running process holds its file's lock, and its id is in the file."""

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def end_shared_processes(directory: Path) -> list[int]:
    """Kill the shared processes below a directory that have outlived all workers; return their ids."""
    running = [pid for lock in directory.glob("*.lock") if (pid := pid_of(lock)) is not None]
    for pid in running:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return running


@contextmanager
def locked(path: Path) -> Iterator[int | None]:
    """Lock a file and yield its descriptor; None if another process has it. A child that inherits it keeps the lock."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            taken: int | None = lock
        except BlockingIOError:
            taken = None
        yield taken
    finally:
        os.close(lock)


def pid_of(lock: Path) -> int | None:
    """Return the process that has locked a file; None if it is unlocked, or has no id yet."""
    with suppress(FileNotFoundError, ValueError), locked(lock) as taken:
        return int(lock.read_text(encoding="ascii")) if taken is None else None
    return None
