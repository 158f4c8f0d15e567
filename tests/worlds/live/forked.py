"""Programs of the service, forked from one process that has imported them.

Imports are five sixths of the processor time in which a worker starts, and a run of the tests starts hundreds. What a
shell starts is shown by the tests of `up`, of the wheels and of the documented commands.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing.context import ForkServerContext
from pathlib import Path

PROGRAMS = ("streams.worker", "gateway.server", "streams.up.replacement", "streams.observability.logs")


def _forking() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *PROGRAMS])
    return context


class Forked:
    """`python -m streams COMMAND` in a session of its own, with this environment alone; used like a `Popen`."""

    def __init__(self, command: str, log: Path, directory: Path, environment: Mapping[str, str]) -> None:
        self._process = _forking().Process(target=_run, args=(command, log, directory, dict(environment)))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code. Raises TimeoutExpired."""
        self._process.join(timeout)
        if (code := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout or 0.0)
        return code

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(command: str, log: Path, directory: Path, environment: dict[str, str]) -> None:
    os.setsid()
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    with log.open("ab") as opened:
        os.dup2(opened.fileno(), sys.stdout.fileno())
        os.dup2(opened.fileno(), sys.stderr.fileno())
    sys.argv = ["modestream", command]
    from streams.__main__ import main  # noqa: PLC0415 - its parser reads the settings

    main()
