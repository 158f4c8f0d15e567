"""The locked files of processes that workers share: while a process runs, its file is locked and has its id."""

import fcntl
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def end_shared_processes(directory: Path) -> list[int]:
    """Kill the shared processes below a directory that still run though no worker does; return their ids."""
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
    """Return the process that has locked a file; None if none has, or it has not said which it is."""
    with suppress(FileNotFoundError, ValueError), locked(lock) as taken:
        return int(lock.read_text(encoding="ascii")) if taken is None else None
    return None
