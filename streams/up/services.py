"""The two children: how each is started, and when it has to be killed."""

import asyncio
import time
from collections.abc import Sequence
from typing import Never

from streams.up.broker import STOP_S, KafkaBroker
from streams.up.child import Child
from streams.up.layout import Layout
from streams.up.liveness import Liveness, ask
from streams.up.supervised import Kind


def broker_kind(layout: Layout, broker: KafkaBroker, answering: asyncio.Event) -> Kind:
    """The broker. `answering` is set when it answers for the first time."""

    async def watch(child: Child) -> str:
        if await broker.answered(child):
            answering.set()
            await _forever()
        return "it does not answer"

    return Kind("broker", layout.log("broker"), STOP_S, broker.start, watch)


def worker_kind(layout: Layout, command: Sequence[str], bootstrap: str, every_s: float) -> Kind:
    """The worker, which is asked every so many seconds whether it makes progress.

    It outlives its broker: when that dies, it is left alone.
    """
    environment = {"MODESTREAM_BROKER": f"kafka://{bootstrap}", "MODESTREAM_DATA_DIR": str(layout.data_dir)}

    async def start() -> Child:
        # Otherwise an earlier worker's port, by now perhaps another process's, would be asked.
        layout.metrics_port.unlink(missing_ok=True)
        return await Child.start(layout, "worker", command, environment)

    async def watch(_: Child) -> str:
        began, liveness = time.monotonic(), Liveness()
        while True:
            await asyncio.sleep(every_s)
            answer = await ask(layout.metrics_port)
            if liveness.is_dead(answer, time.monotonic() - began):
                return f"it is {answer}"

    return Kind("worker", layout.log("worker"), STOP_S, start, watch)


async def _forever() -> Never:
    while True:
        await asyncio.Event().wait()
