"""A real broker for tests: the production class, on a free port and in its own directory."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from streams.up.broker import STOP_TIMEOUT_S
from streams.up.child import Child
from streams.up.installing import default_cache_dir, install_kafka
from streams.up.layout import Layout, free_port
from tests.worlds.live.secured_listener import SecuredBroker, SecuredListener, create_listener


@dataclass(frozen=True, slots=True)
class RunningBroker:
    bootstrap: str
    """`127.0.0.1:PORT`."""

    pid: int

    secured: SecuredListener
    """Its listener with TLS and SASL."""


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


async def _start(layout: Layout, port: int, kind: type[SecuredBroker]) -> tuple[SecuredBroker, Child]:
    layout.create()
    broker = kind(layout, port, await install_kafka(default_cache_dir(), layout, _tell))
    broker.listener = create_listener(layout.run)
    await broker.format()
    child = await broker.start()
    if not await broker.wait_until_answering(child):
        await child.stop(0)
        reason = f"the broker does not answer, see {layout.log('broker')}"
        raise AssertionError(reason)
    return broker, child


@contextmanager
def running_broker(
    directory: Path, port: int | None = None, kind: type[SecuredBroker] = SecuredBroker
) -> Iterator[RunningBroker]:
    """Run a broker with its files in `directory` until the block ends.

    It has its own thread and event loop, so that tests with different loops can share it.
    """
    starting = _start(Layout(directory.resolve()), port or free_port(), kind)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="broker", daemon=True)
    thread.start()
    try:
        broker, child = asyncio.run_coroutine_threadsafe(starting, loop).result()
        try:
            yield RunningBroker(broker.bootstrap, child.pid, broker.listener)
        finally:
            asyncio.run_coroutine_threadsafe(child.stop(STOP_TIMEOUT_S), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
