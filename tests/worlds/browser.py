"""The whole system with the demo's data, for tests in a browser; and calls of the client between a page's actions.

Enters: a data directory. Leaves: the addresses. Guaranteed: the processes end with the block.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import httpx
from modestream_client import MemoryClient

from streams.demo.script import DEMO_USER_ID, run_demo
from streams.up.layout import free_port

Result = TypeVar("Result")

LIMIT_S = 30.0
"""Limit of a wait: three times what the contract says for the counts of a user."""


class System(NamedTuple):
    bootstrap: str
    url: str

    def command(self, name: str, arguments: Mapping[str, Any], project_id: str = "default") -> dict[str, Any]:
        """Carry out a command over Kafka as the demo's user, to see what a page did."""

        async def carried_out() -> dict[str, Any]:
            async with MemoryClient(self.bootstrap, user_id=DEMO_USER_ID) as memory:
                return dict(await memory.command(name, dict(arguments), project_id=project_id))

        return in_thread(carried_out())


def in_thread(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a loop of its own: the browser's loop is busy in this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


@contextmanager
def running_system(directory: Path, models: Path, **settings: str) -> Iterator[System]:
    """Run `up` with the demo's memories until the block ends."""
    environment = {**os.environ, "MODESTREAM_MODEL_DIR": str(models)} | {
        f"MODESTREAM_{name}": value for name, value in settings.items()
    }
    ports = ("--port", str(free_port()), "--http-port", "0")
    with (directory / "up.err").open("wb") as errors:
        up = subprocess.Popen(
            (sys.executable, "-m", "streams", "up", "--data-dir", str(directory / "data"), *ports),
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            text=True,
            start_new_session=True,
        )
    try:
        system = _ready(up)
        assert in_thread(run_demo(system.bootstrap, lambda _: None)) == 0
        waited_for(lambda: _is_counted(system))
        yield system
    finally:
        up.send_signal(signal.SIGTERM)
        up.communicate(timeout=60)


def waited_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds. Raises AssertionError after `LIMIT_S`."""
    until = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < until, "it does not hold"
        time.sleep(0.2)


def _is_counted(system: System) -> bool:
    """True once the gateway knows the demo's modes: they are published within ten seconds of a change."""
    users = httpx.get(f"{system.url}/v1/users").json()["items"]
    return any("journal" in user["modes"] for user in users)


def _ready(up: subprocess.Popen[str]) -> System:
    assert up.stdout is not None
    for line in up.stdout:
        if line.startswith("ready "):
            named = dict(pair.split("=", 1) for pair in line.split()[1:])
            return System(named["bootstrap"], named["http"])
    raise AssertionError("the system ended before it was ready")
