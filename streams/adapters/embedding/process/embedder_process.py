"""A worker's connection to an embedder's process, shared by all workers with the same directory.

The first worker that needs a model starts its process, with a listening socket and a locked file that the process
inherits. Guaranteed: one process for each model and its options; it outlives the worker that started it, and ends when
no worker is connected, however they die; the lock of an ended process is free.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import structlog

from schemas.failures import ModelMissing
from streams.adapters.embedding.process.frames import create_slots, read_slots

PROJECT_ROOT = Path(__file__).parents[4]
"""The process's working directory: the project is not an installed package."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Passages run in parallel on all cores, so one matrix product must not use more than one."""

PROTOCOL = 4
"""Increase with every change of the frames or the mapped file: workers of two releases run side by side."""

MAX_WAITING_CONNECTIONS = 128

OPEN_TIMEOUT_S = 10.0
"""Time that another worker may take between its lock and its socket: it may freeze in between."""

OPEN_POLL_INTERVAL_S = 0.01

MAX_REOPENED = 2
"""Reconnections if the first byte does not come: the process may just have been ending."""

MAX_SOCKET_PATH_BYTES = 100
"""Limit of a socket's address: systems allow about 104 to 108."""

log = structlog.get_logger()


class EmbedderProcess:
    """One run of an embedder's process, as a worker sees it: the connection, its end, the texts in progress."""

    def __init__(self, command: Sequence[str], directory: Path) -> None:
        """Connect to the process of this command, starting it if needed. Raises ModelMissing, OSError."""
        name = hashlib.sha256("\n".join((str(PROTOCOL), *command)).encode()).hexdigest()[:16]
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock, self._address = directory / f"{name}.lock", directory / f"{name}.sock"
        self._slots = directory / f"{name}.work"
        self._command = command
        self._is_heard = self._is_abandoned = False
        self._connection, self._slots_file = self._opened()

    @property
    def pid(self) -> int:
        """The process id; 0 without a process, or if it is not known yet."""
        return pid_of(self._lock) or 0

    def read(self, length: int) -> bytes:
        """Read `length` bytes, fewer at the end. Blocks; only before `connect`.

        If the process ends before its first byte, reads from the process that replaces it.
        """
        content = self._receive(length)
        for _ in range(MAX_REOPENED):
            # Perhaps the process was ending, as no other worker was connected, when this one came.
            if content or self._is_heard or self._is_abandoned:
                break
            self._connection.close()
            os.close(self._slots_file)
            self._connection, self._slots_file = self._opened()
            content = self._receive(length)
        self._is_heard = True
        return content

    def _receive(self, length: int) -> bytes:
        with contextlib.suppress(ConnectionError):
            return self._connection.recv(length, socket.MSG_WAITALL)
        return b""

    async def connect(self, reader: asyncio.Protocol) -> asyncio.WriteTransport:
        """Have the event loop read; return the writer."""
        self._connection.setblocking(False)  # noqa: FBT003 - the standard library takes no keyword
        writing, _ = await asyncio.get_running_loop().create_unix_connection(lambda: reader, sock=self._connection)
        return writing

    def under_way(self) -> frozenset[bytes]:
        """Return the keys of the texts in the process when it died, those of other workers included."""
        return read_slots(self._slots_file)

    def abandon(self) -> None:
        """End a blocking `read`."""
        self._is_abandoned = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def kill(self) -> None:
        """Kill the hanging process, for all workers. Leave a later one alone."""
        if pid := self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def end(self, writing: asyncio.WriteTransport | None) -> None:
        if writing is None:
            self._connection.close()
        else:
            # Not `close`: it waits until all is written, and a hanging process reads nothing.
            writing.abort()
        if self._slots_file >= 0:
            os.close(self._slots_file)
            self._slots_file = -1

    def _opened(self) -> tuple[socket.socket, int]:
        """Return a connection, and the open file of the texts in progress."""
        deadline = time.monotonic() + OPEN_TIMEOUT_S
        while time.monotonic() < deadline:
            if (connection := _connected(self._address)) is None:
                with locked(self._lock) as lock:
                    connection = None if lock is None else self._start(lock)
            if connection is not None:
                return connection, os.open(self._slots, os.O_RDONLY)
            time.sleep(OPEN_POLL_INTERVAL_S)
        raise ModelMissing(f"the embedder's process {self.pid} has its lock and takes no connection")

    def _start(self, lock: int) -> socket.socket:
        """Start the process with the locked file and the socket, to which this worker is already connected."""
        os.ftruncate(lock, 0)
        create_slots(self._slots)
        self._address.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listening:
            with _short(self._address) as address:
                listening.bind(address)
            listening.listen(MAX_WAITING_CONNECTIONS)
            connection = _connected(self._address)
            assert connection is not None
            process = subprocess.Popen(  # noqa: S603
                (*self._command, str(listening.fileno()), str(lock), str(self._slots)),
                stdin=subprocess.DEVNULL,
                # Its messages are in the log of the worker that started it.
                stdout=2,
                cwd=PROJECT_ROOT,
                env=os.environ | ONE_THREAD,
                pass_fds=(listening.fileno(), lock),
                # A kill of this worker's process group must not reach it.
                start_new_session=True,
            )
        os.pwrite(lock, f"{process.pid}\n".encode(), 0)
        # It ends after this worker, or before it: then reap the zombie.
        threading.Thread(target=process.wait, name="embedder-process", daemon=True).start()
        log.info("embedder process is started", pid=process.pid)
        return connection


def _connected(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        with _short(path) as address:
            connection.connect(address)
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    return connection


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield an address of a socket that is short enough for the system, however long its path is."""
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


# A running process holds its file's lock, and its id is in the file.
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
