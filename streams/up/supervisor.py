"""`streams up`: a broker and a worker under one process, until a signal ends them.

Enters: a data directory, a port, a question that shows when requests are answered. Leaves: one line on standard
output, `ready bootstrap=127.0.0.1:PORT`; everything else is said on standard error. Guaranteed: one supervisor a
directory; children that die are started again; after SIGINT, SIGTERM or SIGHUP nothing is left running; what a SIGKILL
leaves running is ended by the next start.
"""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from schemas.failures import Unavailable
from streams.up.layout import Layout
from streams.up.options import UpOptions
from streams.up.ownership import StartRefused, end_orphans, hold_data_dir
from streams.up.ports import is_free
from streams.up.system import run_system

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What ends it. The last one is a terminal that closes, which the children would not notice by themselves."""


async def run_up(options: UpOptions) -> int:
    """Run until a signal comes. Returns the exit code: 0 after a signal, 1 when it can't run, with the reason told."""
    ending = asyncio.Event()
    for order in STOP_SIGNALS:
        # The second Ctrl-C of someone impatient changes nothing: the children are being ended already.
        asyncio.get_running_loop().add_signal_handler(order, ending.set)
    try:
        await _until(ending, _run(options, Layout(options.data_dir.expanduser().resolve())))
    except (StartRefused, Unavailable, OSError) as error:
        options.tell(f"up: {error}")
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
        await end_orphans(layout, options.tell)
        if not is_free(options.port):
            reason = f"port {options.port} is taken by another program; choose another with --port"
            raise StartRefused(reason)
        await run_system(options, layout)
