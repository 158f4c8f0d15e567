"""Paths of the files in a data directory, and free loopback ports."""

import socket
from dataclasses import dataclass
from pathlib import Path

from streams.settings import worker_run_dir


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths below a data directory; only `create` creates any."""

    data_dir: Path
    """Absolute: it is in the environment of children, and distinguishes them from other processes."""

    @property
    def run(self) -> Path:
        """Pid files, the lock and generated settings; needed only at run time."""
        return self.data_dir / "run"

    @property
    def logs(self) -> Path:
        """Output of the children."""
        return self.data_dir / "logs"

    @property
    def kafka(self) -> Path:
        """The broker's log segments: the source of truth."""
        return self.data_dir / "kafka"

    @property
    def lock(self) -> Path:
        """Held by the one supervisor of this directory."""
        return self.run / "up.lock"

    def metrics_port(self, worker_id: str | None) -> Path:
        """Written by the worker with this id: the loopback port of its metrics and of `/live`."""
        return worker_run_dir(self.data_dir, worker_id) / "metrics.port"

    @property
    def workers_port(self) -> Path:
        """Written by a supervisor of several workers: the port of the metrics of all."""
        return self.run / "workers.port"

    @property
    def rolling_restart(self) -> Path:
        """Written by the supervisor: the progress of a rolling restart."""
        return self.run / "rolling-restart.json"

    def pid_file(self, name: str) -> Path:
        """The pid of a child, in decimal."""
        return self.run / f"{name}.pid"

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    @property
    def audit_log(self) -> Path:
        """The gateway's audit log, which it rotates itself: not named `*.log`, as those are rotated here."""
        return self.logs / "audit.jsonl"

    def create(self) -> None:
        for directory in (self.run, self.logs):
            directory.mkdir(parents=True, exist_ok=True)


DEFAULT_HTTP_PORT = 8080
"""The gateway's default port, if it is free."""


def free_port() -> int:
    """Return a loopback port that is free at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def is_free(port: int) -> bool:
    """True if a server could listen on this loopback port now."""
    try:
        with socket.create_server(("127.0.0.1", port)):
            return True
    except OSError:
        return False


def choose_http_port(wanted: int | None) -> int:
    """Return the gateway's port: the wanted one; a free one for 0; the usual one, or a free one, for None."""
    if wanted is None:
        return DEFAULT_HTTP_PORT if is_free(DEFAULT_HTTP_PORT) else free_port()
    return wanted or free_port()
