"""`streams up`: a broker, a worker and a gateway under one process, until a signal ends them.

Prints one line on standard output, `ready bootstrap=127.0.0.1:PORT http=http://127.0.0.1:HTTP_PORT`; all other
messages go to standard error.
Guaranteed: one supervisor for each data directory; children that die are restarted; after SIGINT, SIGTERM or SIGHUP
nothing is left running; children that survive a SIGKILL are ended by the next start.
"""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from schemas.failures import Unavailable
from streams.up.layout import Layout
from streams.up.ownership import StartRefused, end_orphans, hold_data_dir
from streams.up.ports import is_free
from streams.up.system import UpOptions, run_system

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end it. SIGHUP comes from a closed terminal, which the children would not notice."""


async def run_up(options: UpOptions) -> int:
    """Run until a signal. Return the exit code: 0 after a signal, 1 if it can't run, with the reason printed."""
    ending = asyncio.Event()
    for order in STOP_SIGNALS:
        # A second Ctrl-C changes nothing: the children are being stopped already.
        asyncio.get_running_loop().add_signal_handler(order, ending.set)
    try:
        await _until(ending, _run(options, Layout(options.data_dir.expanduser().resolve(), options.worker_id)))
    except (StartRefused, Unavailable, OSError) as error:
        options.print_line(f"up: {error}")
        return 1
    return 0


async def _until(ending: asyncio.Event, running: Coroutine[Any, Any, None]) -> None:
    """Run until `ending` is set; an error that comes first is raised."""
    work, waiting = asyncio.create_task(running), asyncio.create_task(ending.wait())
    await asyncio.wait((work, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    work.cancel()
    with suppress(asyncio.CancelledError):
        await work


async def _run(options: UpOptions, layout: Layout) -> None:
    layout.create()
    with hold_data_dir(layout):
        await end_orphans(layout, options.print_line)
        if not is_free(options.port):
            raise StartRefused(f"port {options.port} is taken by another program; choose another with --port")
        if options.http_port and not is_free(options.http_port):
            raise StartRefused(f"port {options.http_port} is taken by another program; choose another with --http-port")
        await run_system(options, layout)
