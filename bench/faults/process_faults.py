"""Processes of `streams up` that are killed, stopped or told to end while turns arrive."""

import asyncio
import os
import signal
from collections.abc import Callable

from bench.faults.load import Load
from bench.faults.row import Act, Fault
from bench.faults.world import World, embedder_pid, new_up

PAUSE_S = 20.0
"""Longer than the session of a worker, 12 s."""

GATEWAY_PAUSE_S = 10.0


def _pid_of(child: str) -> Callable[[World], int]:
    return embedder_pid if child == "embedder" else lambda world: world.pid(child)


def signalled(child: str, number: signal.Signals) -> Act:
    """Return the fault of one signal."""

    async def act(world: World, _load: Load) -> str:
        os.kill(_pid_of(child)(world), number)
        return ""

    return act


def paused(child: str, seconds: float) -> Act:
    """Return the fault of a process that stands still."""

    async def act(world: World, _load: Load) -> str:
        pid = _pid_of(child)(world)
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(seconds)
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            return "it was replaced while it stood still"
        return ""

    return act


PROCESS_FAULTS = [
    Fault("worker, `kill -9`", new_up, signalled("worker", signal.SIGKILL)),
    Fault("worker, SIGTERM in a batch", new_up, signalled("worker", signal.SIGTERM)),
    Fault(f"worker, SIGSTOP for {PAUSE_S:g} s", new_up, paused("worker", PAUSE_S)),
    Fault("embedder, `kill -9`", new_up, signalled("embedder", signal.SIGKILL)),
    Fault(f"embedder, SIGSTOP for {PAUSE_S:g} s", new_up, paused("embedder", PAUSE_S)),
    Fault("broker, `kill -9`", new_up, signalled("broker", signal.SIGKILL)),
    Fault(f"broker, SIGSTOP for {PAUSE_S:g} s", new_up, paused("broker", PAUSE_S)),
    Fault("gateway, `kill -9`", new_up, signalled("gateway", signal.SIGKILL), over_http=True),
    Fault(f"gateway, SIGSTOP for {GATEWAY_PAUSE_S:g} s", new_up, paused("gateway", GATEWAY_PAUSE_S), over_http=True),
]
