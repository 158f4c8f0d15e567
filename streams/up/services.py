"""Broker and worker as supervised children: how each is started, and when it must be killed."""

import asyncio
import time
from collections.abc import Sequence
from typing import Never

from streams.up.broker import STOP_TIMEOUT_S, KafkaBroker
from streams.up.child import Child
from streams.up.layout import Layout
from streams.up.liveness import LivenessMonitor, probe_liveness
from streams.up.supervised import ServiceSpec


def broker_service(layout: Layout, broker: KafkaBroker, answering: asyncio.Event) -> ServiceSpec:
    """Describe the broker. `answering` is set at its first answer."""

    async def watch(child: Child) -> str:
        if await broker.wait_until_answering(child):
            answering.set()
            await _forever()
        return "it does not answer"

    return ServiceSpec("broker", layout.log("broker"), STOP_TIMEOUT_S, broker.start, watch)


def worker_service(layout: Layout, command: Sequence[str], bootstrap: str, liveness_interval_s: float) -> ServiceSpec:
    """Describe the worker, probed every `liveness_interval_s` seconds. It survives restarts of the broker."""
    environment = {"MODESTREAM_BROKER": f"kafka://{bootstrap}", "MODESTREAM_DATA_DIR": str(layout.data_dir)}

    async def start() -> Child:
        # Otherwise the port of an earlier worker would be probed, which another process may have by now.
        layout.metrics_port.unlink(missing_ok=True)
        return await Child.start(layout, "worker", command, environment)

    async def watch(_: Child) -> str:
        began, liveness = time.monotonic(), LivenessMonitor()
        while True:
            await asyncio.sleep(liveness_interval_s)
            answer = await probe_liveness(layout.metrics_port)
            if liveness.is_dead(answer, time.monotonic() - began):
                return f"it is {answer}"

    return ServiceSpec("worker", layout.log("worker"), STOP_TIMEOUT_S, start, watch)


async def _forever() -> Never:
    while True:
        await asyncio.Event().wait()
