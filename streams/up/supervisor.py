"""`streams up`: a broker, workers and a gateway under one process, until a signal ends them; or workers alone.

Prints one line on standard output, `ready bootstrap=127.0.0.1:PORT http=http://127.0.0.1:HTTP_PORT`; all other
messages go to standard error. `streams restart` has the supervisor of a data directory restart its workers one after
another, and waits. `start_up` runs it as the child of another program, such as the demo or a benchmark, on free ports.
Guaranteed: one supervisor for each data directory; children that die are restarted; after SIGINT, SIGTERM or SIGHUP
nothing is left running; children that survive a SIGKILL are ended by the next start.
"""

import asyncio
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from schemas.failures import Unavailable
from streams.up.console import PrintLine, print_line
from streams.up.fleet import Fleet, FleetOptions, rotate_logs, run_together
from streams.up.installing import default_cache_dir, install_kafka
from streams.up.layout import Layout, free_port, is_free
from streams.up.ownership import StartRefused, end_orphans, hold_data_dir, supervisor_of
from streams.up.system import UpOptions, run_system

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end it. SIGHUP comes from a closed terminal, which the children would not notice."""


RESTART_SIGNAL = signal.SIGUSR1


async def run_up(options: UpOptions) -> int:
    """Run until a signal. Return the exit code, of `docs/operations.md`; the reason of a refusal is printed."""
    layout = Layout(options.data_dir.expanduser().resolve())

    async def run() -> None:
        if not is_free(options.port):
            raise StartRefused(f"port {options.port} is taken by another program; choose another with --port")
        if options.http_port and not is_free(options.http_port):
            raise StartRefused(f"port {options.http_port} is taken by another program; choose another with --http-port")
        await run_system(options, layout, _watch_restarts)

    return await _supervise("up", layout, run, options.print_line)


async def run_fetch() -> int:
    """Install Kafka, for later starts without a network. Return the exit code, as `run_up` does."""
    with TemporaryDirectory() as directory:
        layout = Layout(Path(directory))

        async def run() -> None:
            await install_kafka(default_cache_dir(), layout, print_line)

        return await _supervise("fetch", layout, run, print_line)


async def run_workers(options: FleetOptions, data_dir: Path, print_line: PrintLine = print_line) -> int:
    """Run several workers against a broker until a signal. Return the exit code, as `run_up` does."""
    layout = Layout(data_dir.expanduser().resolve())
    fleet = Fleet(options, layout, {}, print_line)

    async def run() -> None:
        _watch_restarts(fleet)
        try:
            await run_together(fleet.run(), fleet.announce(), rotate_logs(layout))
        finally:
            await fleet.stop()

    return await _supervise("worker", layout, run, print_line)


async def _supervise(
    name: str, layout: Layout, work: Callable[[], Coroutine[Any, Any, None]], print_line: PrintLine
) -> int:
    """Run with the data directory locked until a signal; return the exit code."""
    ending = asyncio.Event()
    for order in STOP_SIGNALS:
        # Ignore a second Ctrl-C: the children are being stopped already.
        asyncio.get_running_loop().add_signal_handler(order, ending.set)
    # Ignored until there are workers to restart: by default it would end this process.
    asyncio.get_running_loop().add_signal_handler(RESTART_SIGNAL, lambda: None)

    async def run() -> None:
        layout.create()
        with hold_data_dir(layout):
            await end_orphans(layout, print_line)
            await work()

    try:
        await _until(ending, run())
    except StartRefused as refused:
        print_line(f"{name}: {refused}")
        return refused.exit_code
    except (Unavailable, OSError) as error:
        print_line(f"{name}: {error}")
        return os.EX_UNAVAILABLE
    return os.EX_OK


async def _until(ending: asyncio.Event, running: Coroutine[Any, Any, None]) -> None:
    """Run until `ending` is set; raise an earlier error."""
    work, waiting = asyncio.create_task(running), asyncio.create_task(ending.wait())
    await asyncio.wait((work, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    work.cancel()
    with suppress(asyncio.CancelledError):
        await work


def _watch_restarts(fleet: Fleet) -> None:
    asyncio.get_running_loop().add_signal_handler(RESTART_SIGNAL, fleet.restart_in_turn)


POLL_INTERVAL_S = 0.2


def run_restart(data_dir: Path, print_line: PrintLine = print_line) -> int:
    """Restart the workers. Return the exit code: 0 when all are back, 1 with the reason printed."""
    layout = Layout(data_dir.expanduser().resolve())
    if (supervisor := supervisor_of(layout)) is None:
        print_line(f"restart: no `up` and no `worker --processes` runs on {layout.data_dir}")
        return 1
    layout.rolling_restart.unlink(missing_ok=True)
    os.kill(supervisor, RESTART_SIGNAL)
    shown_worker = ""
    while supervisor_of(layout) == supervisor:
        state, worker = _progress(layout)
        if state == "done":
            return 0
        if state == "failed":
            print_line(f"restart: the {worker} is not back, the others are not restarted; see {layout.log(worker)}")
            return 1
        if worker != shown_worker:
            print_line(f"restarting the {worker}")
            shown_worker = worker
        time.sleep(POLL_INTERVAL_S)
    print_line("restart: the supervisor has ended")
    return 1


def _progress(layout: Layout) -> tuple[str, str]:
    try:
        progress = orjson.loads(layout.rolling_restart.read_bytes())
    except FileNotFoundError:
        return "", ""
    return progress["state"], progress["worker"]


READY = "ready "


async def start_up(
    data_dir: Path, environment: Mapping[str, str], cwd: Path | None = None, *, workers: int = 1
) -> Process:
    """Start `streams up` with the broker and the gateway on free ports; its standard output is a pipe."""
    options = ("--port", str(free_port()), "--http-port", "0", "--workers", str(workers))
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "streams", "up", "--data-dir", str(data_dir), *options),
        stdout=PIPE,
        env=environment,
        cwd=cwd,
        # Ctrl-C reaches only this process, which stops the child once.
        start_new_session=True,
    )


async def ready_addresses(up: Process) -> Mapping[str, str] | None:
    """Wait for the ready line and return its addresses, `bootstrap` and `http`; None if the system ends before."""
    assert up.stdout is not None
    async for line in up.stdout:
        text = line.decode().strip()
        if text.startswith(f"{READY}bootstrap="):
            return dict(pair.split("=", 1) for pair in text.removeprefix(READY).split())
    return None
